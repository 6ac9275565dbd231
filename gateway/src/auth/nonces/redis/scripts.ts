/**
 * Lua scripts that Redis runs. All users of a server share one Lua environment, so scripts call functions of Lua's tables,
 * which are read-only, and no methods of strings, whose metatable older servers let everybody change.
 */

/**
 * Joins the current generation of the nonce store, or makes a new one if there is none or if it began on another server:
 * after a restart, a failover or a move of its hash slot, the last nonces may be lost even if all other data is there. Only a
 * server that syncs every write to disk before it answers, and that was never a replica, is known to have lost nothing. A server
 * that has evicted keys since then counts as another one.
 *
 * A new generation begins after core has recorded it. So whatever was accepted in an earlier generation that core has confirmed
 * since is not much later than this beginning, also on another server.
 *
 * KEYS: the key of the generation. ARGV: the server's run ID; 1 if it is durable, else 0; the ID for a new generation; the ID
 * of a generation that another one has followed, or an empty string; the ID of a generation that core has recorded, or an empty
 * string.
 * Returns the generation: the server (run ID, replication ID, number of evicted keys), whether it is durable, the ID of the
 * generation, and when it began, in seconds, or - if it has not begun yet.
 */
export const joinScript = `
local info = redis.call('INFO', 'server', 'stats', 'replication')
local run = string.match(info, 'run_id:(%x+)')
if run ~= ARGV[1] then return redis.error_reply('ERR another server answered') end
local evicted = string.match(info, 'evicted_keys:(%d+)')
local server = run .. ':' .. string.match(info, 'master_replid:(%x+)') .. ':' .. evicted
local stored = redis.call('GET', KEYS[1]) or ''
local storedServer, durable, id, began = string.match(stored, '^(%S+) (%d) (%S+) (%S+)$')
local neverReplica = string.find(info, 'second_repl_offset:-1', 1, true)
local lostNothing = durable == '1' and ARGV[2] == '1' and evicted == '0' and neverReplica
if (storedServer ~= server and not lostNothing) or id == ARGV[4] then
  id = ARGV[3]
  began = '-'
end
if began == '-' and id == ARGV[5] then began = redis.call('TIME')[1] end
local generation = table.concat({ server, ARGV[2], id, began }, ' ')
if generation ~= stored then redis.call('SET', KEYS[1], generation) end
return generation
`

/**
 * Runs many operations on nonces and buckets of one group of partitions in one call. The text of the script contains a mark of
 * the Redis server, and the script is called by the hash of its text. So a server that was restarted, or that has replaced
 * another one, does not know the script until a gateway has joined the generation there. Only holders of the key of the nonce
 * store can compute the mark, so nobody else can make the script known.
 *
 * A nonce is claimed by two commands: the first makes a key that expires, the second renames it unless the nonce exists. The
 * Redis user of the gateways may use nonces as the target of this rename only, so it cannot shorten the life of a nonce
 * (docs/decisions/0035).
 *
 * KEYS: the key of the generation; a key for the claims; then those of each operation. ARGV: the generation as the gateway
 * knows it; how long to store a nonce, in ms; the operations, one letter each; interval in microseconds and burst of keys'
 * buckets; the same of addresses' buckets. The operations:
 *
 * - C claims a nonce.
 * - K claims a nonce if it is new and the key's bucket, the next of KEYS, is not empty; takes one from that bucket.
 * - L looks a nonce up.
 * - F takes one from an address's bucket.
 * - P writes the generation again, to check that writing works.
 *
 * Returns nil if the generation is another one. Otherwise the server's time in seconds, then one result per operation. C and
 * L: 1 if the nonce is new, else 0. F: remaining, ms to wait, ms until full (see Tally in limits/rate.ts). K: 0, or 1 and the
 * result of F. P: 1.
 */
export function batchScript(mark: string): string {
  return `-- ${mark}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function claim(nonce)
  redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
  return redis.call('RENAMENX', KEYS[2], nonce)
end

local function take(bucket, interval, burst)
  local span = interval * burst
  local stored = tonumber(redis.call('GET', bucket) or 0)
  -- No number, or not a number: written by somebody else.
  if not stored or stored ~= stored then stored = 0 end
  -- The clock was set back, or somebody else wrote it: the bucket is empty now, and not for ever.
  if stored > now + span then
    stored = now + span
    redis.call('SET', bucket, string.format('%.0f', stored), 'PX', math.ceil(span / 1000))
  end
  local from = math.max(stored, now)
  local after = from + interval
  local wait = after - span - now
  if wait > 0 then return 0, math.ceil(wait / 1000), math.ceil((from - now) / 1000) end
  local full = math.ceil((after - now) / 1000)
  redis.call('SET', bucket, string.format('%.0f', after), 'PX', full)
  return math.floor((span - (after - now)) / interval), 0, full
end

local results = { tonumber(time[1]) }
local at = 3
for i = 1, #ARGV[3] do
  local operation = string.sub(ARGV[3], i, i)
  if operation == 'C' then
    results[i + 1] = claim(KEYS[at])
  elseif operation == 'L' then
    results[i + 1] = 1 - redis.call('EXISTS', KEYS[at])
  elseif operation == 'F' then
    results[i + 1] = { take(KEYS[at], ARGV[6], ARGV[7]) }
  elseif operation == 'P' then
    redis.call('SET', KEYS[1], ARGV[1])
    results[i + 1] = 1
    at = at - 1
  else
    local nonce = KEYS[at]
    at = at + 1
    if redis.call('EXISTS', nonce) == 1 then
      results[i + 1] = { 0 }
    else
      local remaining, wait, full = take(KEYS[at], ARGV[4], ARGV[5])
      if wait == 0 then claim(nonce) end
      results[i + 1] = { 1, remaining, wait, full }
    end
  end
  at = at + 1
end
return results
`
}
