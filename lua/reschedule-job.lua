-- name     reschedule-job
-- purpose  moves a pending one-time job to another scheduled time
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 time ms; 8 relative bool
-- returns  OK record now | NOT_FOUND | WRONG_LAYOUT | BAD_RECORD | NOT_A_JOB | OUT_OF_RANGE | PAST_DEADLINE | QUEUE_BROKEN reason
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
--- @include "deadline"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.kind ~= KIND_JOB then return { 'NOT_A_JOB' } end
local at = tonumber(ARGV[7]) + (ARGV[8] == '1' and now or 0)
if at < 0 or at > 253402300799999 then return { 'OUT_OF_RANGE' } end
record.at = at
if isPastDeadline(record) then return { 'PAST_DEADLINE' } end
if record.state == STATE_HELD then
  local queue = openQueue(base, queueName)
  local aside, mark = runPlace.setAside(queue.prefix, jobId, record)
  if aside then
    -- BullMQ has it already, and keeps its attempts.
    if queue.broken then return { 'QUEUE_BROKEN', queue.broken } end
    runPlace.putBack(tag, queue, bucket, identity, jobId, record, mark, at, now)
    flushCounts(tag)
    return { 'OK', encodeRecord(record), now }
  end
  -- Its timer brings it to the gate again.
  countRecord(queueName, record, -1)
  record.state = STATE_SCHEDULED
  countRecord(queueName, record, 1)
end
return storeEdited(record, now)
