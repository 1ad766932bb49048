-- name     drop-job-scheduler
-- purpose  removes a Job Scheduler of BullMQ, and tells whether its next run was still to come
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 scheduler text
-- returns  OK pending(1 if its next run was delayed and is gone with it) next | NOT_FOUND | WRONG_LAYOUT
-- cost     O(log N)

local tag, layout, base, queueName, scheduler = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local rcall = redis.call

--- @include "record"
--- @include "shard"
--- @include "bullmq/removeJobKeys"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local prefix = base .. queueName .. ':'
local repeatKey = prefix .. 'repeat'
local next = redis.call('ZSCORE', repeatKey, scheduler)
if not next then return { 'NOT_FOUND' } end
local runId = 'repeat:' .. scheduler .. ':' .. next
local pending = redis.call('ZREM', prefix .. 'delayed', runId)
if pending == 1 then
  removeJobKeys(prefix .. runId)
  redis.call('XADD', prefix .. 'events', 'MAXLEN', '~', 10000, '*', 'event', 'removed', 'jobId', runId, 'prev', 'delayed')
end
redis.call('ZREM', repeatKey, scheduler)
redis.call('DEL', repeatKey .. ':' .. scheduler)
return { 'OK', pending, next }
