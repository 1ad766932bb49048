-- name     record-effect
-- purpose  records under a key, once, what an attempt did, together with the Redis commands that it asks for
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 run id text; 6 lock text; 7 token text; 8 key text; 9 kept for ms; 10 result json; 11 commands json(list of lists of text); 12 write bool
-- returns  OK | KNOWN result | STALE_RUN | EFFECT_FAILED command message | WRONG_LAYOUT
-- cost     O(1) and that of the commands
-- Without `write` it only looks: KNOWN, or OK when nothing is recorded.

local tag, layout, base, queueName, runId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

--- @include "record"
--- @include "shard"
--- @include "held-run"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local mark = tag .. ':once:' .. queueName .. ':' .. ARGV[8]
local known = redis.call('GET', mark)
if known then return { 'KNOWN', known } end
if not holdsRun(runKey(base, queueName, runId), ARGV[6], ARGV[7]) then return { 'STALE_RUN' } end
if ARGV[12] ~= '1' then return { 'OK' } end
for index, command in ipairs(cjson.decode(ARGV[11])) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then
    -- What went before it in the list is done; the mark is not set, so that nobody takes the whole for recorded.
    return { 'EFFECT_FAILED', tostring(index), reply.err }
  end
end
redis.call('SET', mark, ARGV[10], 'PX', ARGV[9])
return { 'OK' }
