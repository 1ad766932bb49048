-- name     pause-run
-- purpose  takes a run that BullMQ has out of its queue into our tier as paused; the worker that has it is asked to hand it back
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 note text
-- returns  OK record now | ASKED "" now | STOCK_WORKER | FINISHED state | PENDING | NOT_FOUND | NOT_WAITING state | QUEUE_BROKEN reason | BAD_RECORD | WRONG_LAYOUT
-- cost     O(length of the queue)
-- BullMQ's hash stays, with its attempts and logs, in none of the queue's lists; the record says that it is paused, and
-- resume-job puts it back.

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
--- @include "run-aside"
--- @include "run-open"
--- @include "run-ask"

local now = clockNow()
local queue = openQueue(base, queueName)
local place, reply = openRun(tag, layout, bucket, identity, queue, jobId, request)
if not place then return reply end
if place == 'active' then
  if not askWorker(tag, queueName, queue.prefix, jobId, 'pause', ARGV[7], now) then return { 'STOCK_WORKER' } end
  runPlace.remember(tag, bucket, identity, request, nil, now, ANSWER_ASKED)
  return { 'ASKED', '', now }
end
if place == 'waiting-children' then return { 'NOT_WAITING', place } end
local delayed = place == 'delayed' and rcall('ZSCORE', queue.prefix .. 'delayed', jobId)
local requests = rememberRequest(tag, bucket, identity, runPlace.requestsOf(tag, bucket, identity), request, ANSWER_OK, now)
local record, text = asideRecord(tag, queue, bucket, identity, jobId, delayed and math.floor(delayed / 4096), requests, ARGV[7], now)
if not record then return { 'BAD_RECORD', text } end
runPlace.leave(queue.prefix, jobId, place)
putAside(tag, queue, bucket, identity, jobId, record, now)
flushCounts(tag)
return { 'OK', text, now }
