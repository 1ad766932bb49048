-- name     resume-run
-- purpose  withdraws a pause that the worker of a run was asked for and has not obeyed yet
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes
-- returns  OK "" now | ASKED "" now | NOT_PAUSED place | BEING_CANCELLED | FINISHED state | PENDING | NOT_FOUND | QUEUE_BROKEN reason | WRONG_LAYOUT
-- cost     O(length of the queue)
-- A handler that has heard of it already stops all the same; leave-run then finds no order, and the run is fetched anew.

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "edit-arguments"
--- @include "run-place"
--- @include "run-open"
--- @include "run-order"

local now = clockNow()
local queue = openQueue(base, queueName)
local place, reply = openRun(tag, layout, bucket, identity, queue, jobId, request)
if not place then return reply end
local order = orderOf(queue.prefix .. jobId)
if not order then return { 'NOT_PAUSED', place } end
if order.verb ~= 'pause' then return { 'BEING_CANCELLED' } end
redis.call('HDEL', queue.prefix .. jobId, 'carillon:asked')
local isAtWork = place == 'active'
runPlace.remember(tag, bucket, identity, request, nil, now, isAtWork and ANSWER_ASKED or ANSWER_OK)
if isAtWork then return { 'ASKED', '', now } end
return { 'OK', '', now }
