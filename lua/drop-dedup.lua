-- name     drop-dedup
-- purpose  ends a deduplication of a queue whose job still waits in the timers
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 queue text; 4 id text; 5 jobId text("" for any)
-- returns  OK dropped(0, 1) | WRONG_LAYOUT
-- cost     O(1)

--- @include "clock"
--- @include "record"
--- @include "shard"

local tag, layout, queueName, id, jobId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local key = tag .. ':dedup:' .. queueName
local entry = redis.call('HGET', key, id)
if not entry then return { 'OK', 0 } end
local _, expiry, _, p = struct.unpack('>I7I6B', entry)
if jobId ~= '' and string.sub(entry, p) ~= jobId then return { 'OK', 0 } end
redis.call('HDEL', key, id)
return { 'OK', (expiry == 0 or expiry > clockNow()) and 1 or 0 }
