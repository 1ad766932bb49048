-- name     leave-run
-- purpose  a worker gives up a run that it was asked to cancel or to pause; no attempt is counted
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 queue text; 6 run id text; 7 lock text; 8 verb text(cancel, pause); 9 reason text
-- returns  OK | STALE_RUN | WRONG_LAYOUT
-- cost     O(length of active)

local tag, layout, base, bucket, queueName, runId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local lock, verb, reason = ARGV[7], ARGV[8], ARGV[9]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "history"
--- @include "held-run"
--- @include "bullmq/removeJob"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local key = runKey(base, queueName, runId)
if not holdsRun(key, lock) then return { 'STALE_RUN' } end
local queue = openQueue(base, queueName)
local prefix = queue.prefix
redis.call('DEL', key .. ':lock')
redis.call('LREM', prefix .. 'active', 1, runId)
redis.call('SREM', prefix .. 'stalled', runId)
if verb == 'pause' then
  markPaused(tag, key, queueName, runId, now, reason)
  return { 'OK' }
end
local scheduledFor = scheduledTimeOf(key)
removeJob(runId, false, prefix, true)
redis.call('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'removed', 'jobId', runId, 'prev', 'active')
writeHistory(tag, now, queueName .. ':' .. runId, scheduledFor, 'cancelled', reason)
writeSpent(tag, bucket, queueName .. ':' .. runId, now, ENDED_CANCELLED, '', false)
return { 'OK' }
