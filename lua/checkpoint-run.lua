-- name     checkpoint-run
-- purpose  keeps how far an attempt has come, for the next one; only while it is the newest attempt and holds the lock
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 run id text; 6 lock text; 7 token text; 8 checkpoint json
-- returns  OK | STALE_RUN | WRONG_LAYOUT
-- cost     O(1)

local tag, layout, base, queueName, runId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

--- @include "record"
--- @include "shard"
--- @include "held-run"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local key = runKey(base, queueName, runId)
if not holdsRun(key, ARGV[6], ARGV[7]) then return { 'STALE_RUN' } end
redis.call('HSET', key, CHECKPOINT, ARGV[8])
return { 'OK' }
