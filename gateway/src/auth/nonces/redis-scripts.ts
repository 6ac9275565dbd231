/** What Redis runs. */

/**
 * Joins the generation of the nonce store, or begins a new one: when there is none, or when it began on another server. A restart or a failover may have lost the last nonces although everything else is there. Only a
 * server that writes every change to the disk before it answers, and was never a replica, is known to have kept all. A
 * server that has evicted anything since counts as another one.
 *
 * KEYS: the generation. ARGV: the server's run id; 1 when it is durable; an id for a new generation. Returns the generation: the
 * server (run id, replication id, how many keys it has evicted), whether it is durable, the generation's id, and when it
 * began, in seconds.
 */
export const joinScript = `
local info = redis.call('INFO')
local run = info:match('run_id:(%x+)')
if run ~= ARGV[1] then return redis.error_reply('ERR another server answered') end
local evicted = info:match('evicted_keys:(%d+)')
local server = run .. ':' .. info:match('master_replid:(%x+)') .. ':' .. evicted
local kept = redis.call('GET', KEYS[1]) or ''
local home, durable, id, began = kept:match('^(%S+) (%d) (%S+) (%d+)$')
local keptAll = durable == '1' and ARGV[2] == '1' and evicted == '0' and info:find('second_repl_offset:-1', 1, true)
if home ~= server and not keptAll then
  id = ARGV[3]
  began = redis.call('TIME')[1]
end
local generation = table.concat({ server, ARGV[2], id, began }, ' ')
if generation ~= kept then redis.call('SET', KEYS[1], generation) end
return generation
`

/**
 * Claims and looks up nonces and takes from buckets, many in one call. The run id makes it another script on every
 * start of a server: called by its hash, it is unknown to a server on which no gateway has joined the generation, whichever
 * way that came in.
 *
 * KEYS: the generation, then what each letter takes. ARGV: the generation as the gateway knows it; the life of a nonce in ms;
 * the letters; interval in microseconds and burst of a key's bucket, then of an address's. The letters: C claims a
 * nonce; K takes from a key's bucket, the next of KEYS, for a nonce that is new, and claims it if there was something to
 * take; L looks a nonce up; F takes from an address's bucket; P writes the generation again, to show that writing works.
 *
 * Returns nil when the generation is another one; else the server's time in seconds, then for C and L 1 when the nonce is
 * new, for F remaining, ms to wait, ms until full (see limits/rate.ts), for K both in one, for P 1.
 */
export function checkScript(runId: string): string {
  return `-- ${runId}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function claim(nonce)
  return redis.call('SET', nonce, '', 'NX', 'PX', ARGV[2]) and 1 or 0
end

local function take(bucket, interval, burst)
  local span = interval * burst
  local from = math.min(math.max(tonumber(redis.call('GET', bucket) or 0), now), now + span)
  local after = from + interval
  local wait = after - span - now
  if wait > 0 then return 0, math.ceil(wait / 1000), math.ceil((from - now) / 1000) end
  local full = math.ceil((after - now) / 1000)
  redis.call('SET', bucket, string.format('%.0f', after), 'PX', full)
  return math.floor((span - (after - now)) / interval), 0, full
end

local answers = { tonumber(time[1]) }
local at = 2
for turn = 1, #ARGV[3] do
  local letter = ARGV[3]:sub(turn, turn)
  if letter == 'C' then
    answers[turn + 1] = claim(KEYS[at])
  elseif letter == 'L' then
    answers[turn + 1] = 1 - redis.call('EXISTS', KEYS[at])
  elseif letter == 'F' then
    answers[turn + 1] = { take(KEYS[at], ARGV[6], ARGV[7]) }
  elseif letter == 'P' then
    redis.call('SET', KEYS[at], ARGV[1])
    answers[turn + 1] = 1
  else
    local nonce = KEYS[at]
    at = at + 1
    if redis.call('EXISTS', nonce) == 1 then
      answers[turn + 1] = { 0 }
    else
      local remaining, wait, full = take(KEYS[at], ARGV[4], ARGV[5])
      if wait == 0 then claim(nonce) end
      answers[turn + 1] = { 1, remaining, wait, full }
    end
  end
  at = at + 1
end
return answers
`
}
