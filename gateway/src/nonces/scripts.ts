/** What Redis runs. */

/**
 * Joins the memory of nonces, or begins a new one: when there is none, and when another server holds it than the one
 * that it began on. A restart or a failover may have lost the last nonces although everything else is there. Only a
 * server that writes every change to the disk before it answers, and was never a replica, is known to have kept all.
 *
 * KEYS: the marker. ARGV: the server's run id; 1 when it is durable; an id for a new memory. Returns the marker: the
 * server, whether it is durable, the memory's id, and when it began, in seconds.
 */
export const joinScript = `
local info = redis.call('INFO')
local run = info:match('run_id:(%x+)')
if run ~= ARGV[1] then return redis.error_reply('ERR another server answered') end
local server = run .. ':' .. info:match('master_replid:(%x+)')
local kept = redis.call('GET', KEYS[1]) or ''
local home, durable, id, began = kept:match('^(%S+) (%d) (%S+) (%d+)$')
local keptAll = durable == '1' and ARGV[2] == '1' and info:find('second_repl_offset:-1', 1, true)
if home ~= server and not keptAll then
  id = ARGV[3]
  began = redis.call('TIME')[1]
end
local marker = table.concat({ server, ARGV[2], id, began }, ' ')
if marker ~= kept then redis.call('SET', KEYS[1], marker) end
return marker
`

/**
 * Claims and looks up nonces, many in one call. The run id makes it another script on every start of a server: called
 * by its hash, it is unknown to a server on which no gateway has joined the memory, whichever way that came in.
 *
 * KEYS: the marker, then the nonces. ARGV: the marker as the gateway knows it; the life of a nonce in ms; a letter for
 * each nonce, C to claim it and L to look. Returns nil when the marker is another one; else the server's time in
 * seconds, then for each nonce 1 when it was new.
 */
export function checkScript(runId: string): string {
  return `-- ${runId}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local answers = { tonumber(redis.call('TIME')[1]) }
for at = 2, #KEYS do
  local isNew
  if ARGV[3]:byte(at - 1) == 67 then
    isNew = redis.call('SET', KEYS[at], '', 'NX', 'PX', ARGV[2])
  else
    isNew = redis.call('EXISTS', KEYS[at]) == 0
  end
  answers[at] = isNew and 1 or 0
end
return answers
`
}
