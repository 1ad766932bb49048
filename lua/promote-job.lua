-- name     promote-job
-- purpose  puts a pending one-time job into its BullMQ queue now, before its time, on a person's word
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 namespace text
-- returns  OK record now | NOT_FOUND | WRONG_LAYOUT | BAD_RECORD | NOT_A_JOB | QUEUE_BROKEN reason | ID_TAKEN
-- cost     O(log N)

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "dedup-hand-over"
--- @include "edit"
--- @include "run-place"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.kind ~= KIND_JOB then return { 'NOT_A_JOB' } end
local queue = openQueue(base, queueName)
if queue.broken then return { 'QUEUE_BROKEN', queue.broken } end
local aside, mark = runPlace.setAside(queue.prefix, jobId, record)
if aside then
  runPlace.putBack(tag, queue, bucket, identity, jobId, record, mark, 0, now)
  flushCounts(tag)
  return { 'OK', encodeRecord(record), now }
end
if redis.call('EXISTS', queue.prefix .. jobId) == 1 then return { 'ID_TAKEN' } end
if hasFlag(record.flags, FLAG_DEDUP) then record.deduplication = deduplicationOf(record) end
local stored, problem = storeRecord(queue, jobId, record, runMark(ARGV[7], record.at, record.inc))
if not stored then return { 'BAD_RECORD', problem } end
if record.deduplication then handOverDedup(tag, base, queueName, record, jobId, now) end
flushQueues()
dropPending(tag, bucket, identity, record, queueName)
writeSpent(tag, bucket, identity, now, ENDED_RUN, record.requests, hasFlag(record.flags, FLAG_GENERATED))
flushCounts(tag)
return { 'OK', encodeRecord(record), now }
