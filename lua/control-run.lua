-- name     control-run
-- purpose  cancels, pauses or resumes a run that BullMQ has, wherever it is; one that runs is asked for by its worker
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 queue text; 6 run id text; 7 verb text(cancel, pause, resume); 8 reason text
-- returns  OK done(text: cancelled, paused, resumed, asked) worker(json, of asked) | NOT_FOUND | ENDED | STOCK_WORKER | NOT_PAUSED | HAS_CHILDREN | WRONG_LAYOUT
-- cost     O(1), and O(length of the queue) for one that waits in it
-- Repeated, it finds what it did: a cancelled run is not found, a paused one is paused, a resumed one is not paused.

local tag, layout, base, bucket, queueName, runId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local verb, reason = ARGV[7], ARGV[8]

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
if redis.call('TYPE', key).ok ~= 'hash' or redis.call('HEXISTS', key, 'timestamp') == 0 then return { 'NOT_FOUND' } end
local queue = openQueue(base, queueName)
local prefix = queue.prefix
local paused = redis.call('HEXISTS', key, PAUSED) == 1

local function tell(event)
  redis.call('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', event, 'jobId', runId, 'prev', paused and 'paused' or 'waiting')
end

if verb == 'resume' then
  if not paused then return { 'NOT_PAUSED' } end
  unmarkPaused(tag, key, queueName, runId)
  local priority = tonumber(redis.call('HGET', key, 'priority')) or 0
  if priority > 0 then
    addJobWithPriority(prefix .. 'marker', prefix .. 'prioritized', priority, runId, prefix .. 'pc', isPaused(queue))
  else
    -- It had its turn before.
    redis.call('RPUSH', prefix .. 'wait', runId)
    addBaseMarkerIfNeeded(prefix .. 'marker', isPaused(queue))
  end
  tell('waiting')
  return { 'OK', 'resumed', '' }
end

if verb == 'pause' and paused then return { 'OK', 'paused', '' } end
if redis.call('HEXISTS', key, 'finishedOn') == 1 then return { 'ENDED' } end
if redis.call('ZSCORE', prefix .. 'waiting-children', runId) then return { 'HAS_CHILDREN' } end
local lock = redis.call('GET', key .. ':lock')
if lock then
  if redis.call('HGET', key, LOCK) ~= lock then return { 'STOCK_WORKER' } end
  redis.call('HSET', key, ASKED, cjson.encode({ verb = verb, reason = reason, at = now }))
  redis.call('PUBLISH', tag .. ':runs', cjson.encode({ queue = queueName, runId = runId, verb = verb }))
  return { 'OK', 'asked', redis.call('HGET', key, WORKER) or '' }
end

-- No worker has it: out of the one list that holds it. In `active` without a lock it waits to be found stalled; whoever
-- worked at it cannot complete it any more.
if redis.call('LREM', prefix .. 'wait', 1, runId) == 0 and redis.call('ZREM', prefix .. 'prioritized', runId) == 0
  and redis.call('ZREM', prefix .. 'delayed', runId) == 0 and redis.call('LREM', prefix .. 'active', 1, runId) == 1 then
  redis.call('SREM', prefix .. 'stalled', runId)
end
if verb == 'pause' then
  markPaused(tag, key, queueName, runId, now, reason)
  return { 'OK', 'paused', '' }
end
local scheduledFor = scheduledTimeOf(key)
unmarkPaused(tag, key, queueName, runId)
removeJob(runId, false, prefix, true)
tell('removed')
writeHistory(tag, now, queueName .. ':' .. runId, scheduledFor, 'cancelled', reason)
-- Its id is free again.
writeSpent(tag, bucket, queueName .. ':' .. runId, now, ENDED_CANCELLED, '', false)
return { 'OK', 'cancelled', '' }
