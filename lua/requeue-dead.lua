-- name     requeue-dead
-- purpose  puts dead letters back into their queue with all their attempts, each as it was read or not at all
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 letters json
-- returns  OK answers(list of REQUEUED, CHANGED, GONE) | QUEUE_BROKEN reason | WRONG_LAYOUT
-- cost     O(n log N) for n <= 100 letters

--- @include "shard"
--- @include "enqueue"
--- @include "bullmq/moveChildBackToParentDependencies"

if not openShard(ARGV[1], ARGV[2]) then return { 'WRONG_LAYOUT' } end
local queue = openQueue(ARGV[3], ARGV[4])
if queue.broken then return { 'QUEUE_BROKEN', queue.broken } end

-- A letter is [id, when it died, its push command, its new payload as text or ""]. What died again since it was read is
-- another letter: a call that is sent twice has its effect once.
local function requeue(id, deadAt, push, data)
  local key = queue.prefix .. id
  local score = rcall('ZSCORE', queue.prefix .. 'failed', id)
  if not score or rcall('EXISTS', key) == 0 then return 'GONE' end
  if tonumber(score) ~= tonumber(deadAt) then return 'CHANGED' end
  rcall('ZREM', queue.prefix .. 'failed', id)
  -- With `stc` or `defa` left a job that stalled too often would die again at once.
  rcall('HDEL', key, 'finishedOn', 'processedOn', 'failedReason', 'atm', 'ats', 'stc', 'defa', 'carillon:asked', 'carillon:worker',
    'carillon:lock')
  rcall('HINCRBY', key, 'carillon:requeued', 1)
  if data ~= '' then rcall('HSET', key, 'data', data) end
  local priority = tonumber(rcall('HGET', key, 'priority') or 0) or 0
  if priority > 0 then
    addJobWithPriority(queue.prefix .. 'marker', queue.prefix .. 'prioritized', priority, id, queue.prefix .. 'pc', isPaused(queue))
  else
    addJobInTargetList(queue.prefix .. 'wait', queue.prefix .. 'marker', push, isPaused(queue), id)
  end
  moveChildBackToParentDependencies(key, 'failed')
  rcall('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'waiting', 'jobId', id, 'prev', 'failed')
  return 'REQUEUED'
end

local answers = {}
for i, letter in ipairs(realJson.decode(ARGV[5])) do answers[i] = requeue(letter[1], letter[2], letter[3], letter[4]) end
return { 'OK', answers }
