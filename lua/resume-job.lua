-- name     resume-job
-- purpose  lets a paused or suspended job or schedule fire again; one whose time passed runs now, unless it waits for parents or a gate
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes
-- returns  OK record now | NOT_FOUND | WRONG_LAYOUT | BAD_RECORD | NOT_PAUSED | QUEUE_BROKEN reason
-- cost     O(log N)

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "edit"
--- @include "run-place"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.state ~= STATE_PAUSED and record.state ~= STATE_SUSPENDED then return { 'NOT_PAUSED' } end
if record.kind == KIND_JOB then
  local queue = openQueue(base, queueName)
  local aside, mark = runPlace.setAside(queue.prefix, jobId, record)
  if aside and record.at <= now and gate.of(tag, queueName) then
    -- BullMQ keeps what it has of the run until the gate lets it go.
    countRecord(queueName, record, -1)
    record.state, record.note = STATE_HELD, nil
    countRecord(queueName, record, 1)
    return storeEdited(record, now)
  end
  if aside then
    if queue.broken then return { 'QUEUE_BROKEN', queue.broken } end
    runPlace.putBack(tag, queue, bucket, identity, jobId, record, mark, record.at, now)
    flushCounts(tag)
    return { 'OK', encodeRecord(record), now }
  end
end
countRecord(queueName, record, -1)
record.state = watch.isWaiting(tag, bucket, identity) and STATE_WAITING or STATE_SCHEDULED
record.note = nil
countRecord(queueName, record, 1)
if record.kind == KIND_SCHEDULE then
  record.failures, record.skips = 0, 0
  if #record.waiting > 0 then record.check = now end
  if record.cur <= now then leaveToPlanner(record, FLAG_RESUMED) end
end
return storeEdited(record, now)
