-- name     leave-run
-- purpose  a worker gives up a run: as it was asked last, cancelled or paused; no attempt is counted
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 queue text; 6 run id text; 7 lock text
-- returns  OK verb(text: cancel, pause; empty when nothing is asked: the worker still has it) | STALE_RUN | BAD_RECORD reason | WRONG_LAYOUT
-- cost     O(length of active)

local tag, layout, base, bucket, queueName, runId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local lock = ARGV[7]

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "held-run"
--- @include "run-place"
--- @include "run-aside"
--- @include "run-order"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local key = runKey(base, queueName, runId)
if not holdsRun(key, lock) then return { 'STALE_RUN' } end
-- The worker stopped for what it heard first; what was asked since may be more, or nothing any more.
local order = orderOf(key)
if not order then return { 'OK', '' } end
local verb, reason = order.verb, tostring(order.reason or '')
local identity = queueName .. ':' .. runId
local queue = openQueue(base, queueName)
local record, text
if verb == 'pause' then
  record, text = asideRecord(tag, queue, bucket, identity, runId, nil, runPlace.requestsOf(tag, bucket, identity), reason, now)
  if not record then return { 'BAD_RECORD', text } end
end
redis.call('DEL', key .. ':lock')
redis.call('LREM', queue.prefix .. 'active', 1, runId)
redis.call('SREM', queue.prefix .. 'stalled', runId)
if record then
  putAside(tag, queue, bucket, identity, runId, record, now)
  flushCounts(tag)
  return { 'OK', verb }
end
local _, mark = runPlace.options(queue.prefix, runId)
local at = tonumber(string.match(mark or '', ' (%d+) ')) or tonumber(rcall('HGET', key, 'timestamp')) or now
runPlace.drop(queue.prefix, runId)
rcall('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'removed', 'jobId', runId, 'prev', 'active')
-- Its id is free again; a late repeat of the submit is answered as before.
local short = readSpent(tag, bucket, identity, true) and true or false
local _, _, requests = readSpent(tag, bucket, identity, short)
writeSpent(tag, bucket, identity, now, ENDED_CANCELLED, requests or '', short)
writeHistory(tag, now, identity, at, 'cancelled', reason)
watch.latch(tag, identity, 'cancelled', reason, now)
return { 'OK', verb }
