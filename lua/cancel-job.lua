-- name     cancel-job
-- purpose  ends a pending job or deletes a schedule; its id is free again at once
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 reason text; 8 kind text(job, schedule, "" for either); 9 runs bool
-- returns  OK record now | NOT_FOUND | NOT_A_JOB | WRONG_LAYOUT | BAD_RECORD
-- cost     O(log N); with `runs` also O(length of the queue) for each run of a schedule that no worker has fetched

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "edit"
--- @include "enqueue"
--- @include "ledger"
--- @include "open-runs"
--- @include "run-place"
--- @include "follow"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
local schedule = record.kind == KIND_SCHEDULE
if ARGV[8] == 'job' and schedule then return { 'NOT_A_JOB' } end
if ARGV[8] == 'schedule' and not schedule then return { 'NOT_FOUND' } end
if not schedule and runPlace.setAside(base .. queueName .. ':', jobId, record) then runPlace.drop(base .. queueName .. ':', jobId) end
dropPending(tag, bucket, identity, record, queueName)
writeSpent(tag, bucket, identity, now, schedule and ENDED_DELETED or ENDED_CANCELLED, record.requests,
  not schedule and hasFlag(record.flags, FLAG_GENERATED), schedule and record.last or nil)
writeHistory(tag, now, identity, schedule and record.cur or record.at, schedule and 'deleted' or 'cancelled', ARGV[7])
if not schedule then watch.latch(tag, identity, 'cancelled', ARGV[7], now) end
if schedule then
  if record.after then follow.finish(tag, identity, (follow.parentsOf(queueName, record.policies))) end
  local queue = openQueue(base, queueName)
  if ARGV[9] == '1' and not queue.broken then
    local entry = { queue = queue, id = jobId, identity = identity }
    for _, run in ipairs(record.open) do
      if not withdraw(tag, entry, record, run, now, 'deleted') then
        askWorker(tag, queueName, queue.prefix, runIdOf(jobId, run), 'cancel', 'deleted', now)
      end
    end
  end
  redis.call('UNLINK', tag .. ':ledger:' .. identity)
end
flushCounts(tag)
local events = base .. queueName .. ':events'
local kind = redis.call('TYPE', events).ok
if not schedule and (kind == 'stream' or kind == 'none') then
  -- As long as the queue's owner wants it, as BullMQ's own events do.
  local meta = base .. queueName .. ':meta'
  local wanted = redis.call('TYPE', meta).ok == 'hash' and redis.call('HGET', meta, 'opts.maxLenEvents') or ''
  local length = #wanted < 16 and string.match(wanted, '^%d+$') or 10000
  redis.call('XADD', events, 'MAXLEN', '~', length, '*', 'event', 'removed', 'jobId', jobId, 'prev', 'delayed')
end
return { 'OK', encodeRecord(record), now }
