-- name     reschedule-run
-- purpose  makes a run that BullMQ has and no worker has fetched due at another time, by BullMQ's own delayed set
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 time ms; 8 relative bool
-- returns  OK "" now | ACTIVE | FINISHED state | PENDING | NOT_FOUND | NOT_WAITING state | OUT_OF_RANGE | QUEUE_BROKEN reason | WRONG_LAYOUT
-- cost     O(length of the queue)

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "edit-arguments"
--- @include "run-place"
--- @include "run-open"

local now = clockNow()
local queue = openQueue(base, queueName)
local place, reply = openRun(tag, layout, bucket, identity, queue, jobId, request)
if not place then return reply end
if place == 'active' then return { 'ACTIVE' } end
if place == 'waiting-children' or place == 'aside' then return { 'NOT_WAITING', place } end
local at = tonumber(ARGV[7]) + (ARGV[8] == '1' and now or 0)
if at < 0 or at > 253402300799999 then return { 'OUT_OF_RANGE' } end
if place == 'delayed' or at > now then
  runPlace.leave(queue.prefix, jobId, place)
  runPlace.enter(queue, jobId, at, tonumber(rcall('HGET', queue.prefix .. jobId, 'priority')) or 0, false, now)
end
runPlace.remember(tag, bucket, identity, request, nil, now)
return { 'OK', '', now }
