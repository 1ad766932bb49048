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
--- @include "run-open"
--- @include "run-ask"

local now = clockNow()
local queue = openQueue(base, queueName)
local place, reply = openRun(tag, layout, bucket, identity, queue, jobId, request)
if not place then return reply end
if place == 'active' then return askWorker(tag, queueName, queue.prefix, jobId, 'pause', ARGV[7], now) end
if place == 'waiting-children' then return { 'NOT_WAITING', place } end
local job = rcall('HMGET', queue.prefix .. jobId, 'name', 'data', 'timestamp', 'priority')
local opts, mark = runPlace.options(queue.prefix, jobId)
local delayed = place == 'delayed' and rcall('ZSCORE', queue.prefix .. 'delayed', jobId)
local timestamp = tonumber(job[3]) or now
local inc = takeInc(tag, now, 1)
local generated = readSpent(tag, bucket, identity, true)
local record = { format = FORMAT, kind = KIND_JOB, state = STATE_PAUSED, flags = generated and FLAG_GENERATED or 0, inc = inc, ver = inc,
  at = delayed and math.floor(delayed / 4096) or tonumber(string.match(mark or '', ' (%d+) ')) or timestamp, timestamp = timestamp,
  requests = rememberRequest('', request, ANSWER_OK), priority = tonumber(job[4]) or 0, lifo = false, name = job[1] or '', data = job[2] or '{}',
  opts = opts, note = ARGV[7] ~= '' and ARGV[7] or nil }
local packed, text = pcall(encodeRecord, record)
if not packed then return { 'BAD_RECORD', tostring(text) } end
runPlace.leave(queue.prefix, jobId, place)
rcall('HSET', queue.prefix .. jobId, 'carillon:paused', string.format('%.0f', inc) .. (mark and ' ' .. mark or ''))
storePending(tag, bucket, identity, record, now)
countRecord(queueName, record, 1)
flushCounts(tag)
return { 'OK', text, now }
