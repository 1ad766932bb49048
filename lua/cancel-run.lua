-- name     cancel-run
-- purpose  takes a run back that BullMQ has and no worker has fetched; the worker that has it is asked to stop
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 reason text
-- returns  OK "" now | ASKED "" now | STOCK_WORKER | FINISHED state | IN_FLOW | HAS_CHILDREN | PENDING | NOT_FOUND | QUEUE_BROKEN reason | WRONG_LAYOUT
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
--- @include "run-ask"

local now = clockNow()
local queue = openQueue(base, queueName)
local place, reply = openRun(tag, layout, bucket, identity, queue, jobId, request)
if not place then return reply end
-- BullMQ's own removal tells a flow's parent; ours would leave it waiting.
local parentKey = rcall('HGET', queue.prefix .. jobId, 'parentKey')
if parentKey and parentKey ~= tag .. ':latch' then return { 'IN_FLOW' } end
-- Children that are under way would go on for nobody.
if place == 'waiting-children' then return { 'HAS_CHILDREN' } end
if place == 'active' then
  if not askWorker(tag, queueName, queue.prefix, jobId, 'cancel', ARGV[7], now) then return { 'STOCK_WORKER' } end
  runPlace.remember(tag, bucket, identity, request, nil, now, ANSWER_ASKED)
  return { 'ASKED', '', now }
end
local _, mark = runPlace.options(queue.prefix, jobId)
local at = tonumber(string.match(mark or '', ' (%d+) ')) or tonumber(rcall('HGET', queue.prefix .. jobId, 'timestamp')) or now
runPlace.leave(queue.prefix, jobId, place)
runPlace.drop(queue.prefix, jobId)
rcall('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'removed', 'jobId', jobId, 'prev', place)
runPlace.remember(tag, bucket, identity, request, ENDED_CANCELLED, now)
writeHistory(tag, now, identity, at, 'cancelled', ARGV[7])
watch.latch(tag, identity, 'cancelled', ARGV[7], now)
return { 'OK', '', now }
