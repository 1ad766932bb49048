-- name     return-delayed
-- purpose  moves a pending one-time job out of the timers into its BullMQ queue's delayed set, in one step
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 ver number; 8 options json
-- returns  OK record now | NOT_FOUND | NOT_A_JOB | CONFLICT | NOT_WAITING state | ID_TAKEN | QUEUE_BROKEN reason | BAD_RECORD | WRONG_LAYOUT
-- cost     O(log N)
-- NOT_WAITING: it is paused or parked, or due, when the scheduler hands it over anyway.

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "dedup-hand-over"
--- @include "edit"
--- @include "bullmq/addDelayedJob"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.kind ~= KIND_JOB then return { 'NOT_A_JOB' } end
if string.format('%.0f', record.ver) ~= ARGV[7] then return { 'CONFLICT' } end
if record.state ~= STATE_SCHEDULED then return { 'NOT_WAITING', STATE_NAMES[record.state] } end
if record.at <= now then return { 'NOT_WAITING', 'due' } end
local queue = openQueue(base, queueName)
local delayedKey = queue.prefix .. 'delayed'
local delayedType = redis.call('TYPE', delayedKey).ok
if queue.broken or (delayedType ~= 'zset' and delayedType ~= 'none') then
  return { 'QUEUE_BROKEN', queue.broken or ('delayed is a ' .. delayedType .. ', BullMQ needs a zset') }
end
local key = queue.prefix .. jobId
if redis.call('EXISTS', key) == 1 then return { 'ID_TAKEN' } end

local delay = record.at - record.timestamp
if hasFlag(record.flags, FLAG_DEDUP) then record.deduplication = deduplicationOf(record) end
runOptionsTable.raw = ARGV[8]
runOptionsTable.priority = record.priority
runOptionsTable.delay = delay
runOptionsTable.de = record.deduplication
local stored, problem = pcall(function()
  storeJob(queue.events, key, jobId, record.name, record.data, runOptionsTable, msText(record.timestamp))
  addDelayedJob(jobId, delayedKey, queue.events, record.timestamp, maxEventsOf(queue), queue.prefix .. 'marker', delay)
end)
if not stored then
  redis.call('DEL', key)
  redis.call('ZREM', delayedKey, jobId)
  return { 'BAD_RECORD', problemText(problem) }
end
if record.deduplication then handOverDedup(tag, base, queueName, record, jobId, now) end
dropPending(tag, bucket, identity, record, queueName)
writeSpent(tag, bucket, identity, now, ENDED_CANCELLED, record.requests, hasFlag(record.flags, FLAG_GENERATED))
writeHistory(tag, now, identity, record.at, 'cancelled', 'moved to BullMQ')
flushCounts(tag)
return { 'OK', encodeRecord(record), now }
