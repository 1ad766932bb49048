-- name     requeue-dead
-- purpose  puts dead letters back into their queue with all their attempts, each as it was read or not at all
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 letters json; 6 namespace text
-- returns  OK answers(list of REQUEUED, CHANGED, GONE) | QUEUE_BROKEN reason | WRONG_LAYOUT
-- cost     O(n log N) for n <= 100 letters

local tag, layout, base, queueName, namespace = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "ledger"
--- @include "open-runs"
--- @include "our-run"
--- @include "bullmq/moveChildBackToParentDependencies"

-- Deaths that a run remembers, and so much of each error.
local DEATHS, ERROR_BYTES = 5, 300

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local queue = openQueue(base, queueName)
if queue.broken then return { 'QUEUE_BROKEN', queue.broken } end

-- What is to be cleared for the new life is kept here, for whoever looks.
local function rememberDeath(key, deadAt)
  local fields = rcall('HMGET', key, 'carillon:deaths', 'failedReason', 'atm')
  local read, deaths = pcall(realJson.decode, fields[1] or '[]')
  if not read or type(deaths) ~= 'table' then deaths = {} end
  local text = fields[2] or ''
  -- Not within a letter of UTF-8.
  local cut = ERROR_BYTES
  while cut > 0 and string.find(string.sub(text, cut + 1, cut + 1), '^[\128-\191]') do cut = cut - 1 end
  text = string.sub(text, 1, cut)
  deaths[#deaths + 1] = { diedAt = tonumber(deadAt), error = text, attempts = tonumber(fields[3]) or 0 }
  while #deaths > DEATHS do table.remove(deaths, 1) end
  rcall('HSET', key, 'carillon:deaths', realJson.encode(deaths))
end

-- A run of a schedule is open again: the overlap policy judges the next tick by it. At most as many as may be open are
-- counted. It is as if a person had triggered it: the tick that it was has been counted.
local function openAgain(scheduleId, id, key)
  local identity = queueName .. ':' .. scheduleId
  local jobs = tag .. ':' .. watch.bucketOf(identity) .. ':jobs'
  local text = redis.call('HGET', jobs, identity)
  local read, record = pcall(decodeRecord, text or '')
  local at, suffix = string.match(string.sub(id, #scheduleId + 2), '^(%d+)(.*)$')
  if not read or record.kind ~= KIND_SCHEDULE or not at then return end
  if not isOurRun(key, runMark(namespace, tonumber(at), record.inc)) then return end
  closeFinished(tag, { queue = queue, queueName = queueName, id = scheduleId, identity = identity }, record, now, {})
  for i, run in ipairs(record.open) do
    if runIdOf(scheduleId, run) == id then table.remove(record.open, i) break end
  end
  if #record.open >= record.maxOpen then return end
  record.open[#record.open + 1] = { at = tonumber(at), since = now, kind = RUN_TRIGGER, suffix = suffix }
  record.ver = takeInc(tag, now, 1)
  redis.call('HSET', jobs, identity, encodeRecord(record))
end

-- A letter is [id, when it died, its push command, its new payload as text or "", whether its checkpoint goes, its
-- schedule or ""]. What died again since it was read is another letter: a call that is sent twice has its effect once.
local function requeue(id, deadAt, push, data, fresh, scheduleId)
  local key = queue.prefix .. id
  local score = rcall('ZSCORE', queue.prefix .. 'failed', id)
  if not score or rcall('EXISTS', key) == 0 then return 'GONE' end
  if tonumber(score) ~= tonumber(deadAt) then return 'CHANGED' end
  if scheduleId ~= '' then openAgain(scheduleId, id, key) end
  rcall('ZREM', queue.prefix .. 'failed', id)
  rememberDeath(key, deadAt)
  -- With `stc` or `defa` left a job that stalled too often would die again at once.
  rcall('HDEL', key, 'finishedOn', 'processedOn', 'failedReason', 'atm', 'ats', 'stc', 'defa', 'carillon:asked', 'carillon:worker',
    'carillon:lock')
  rcall('HINCRBY', key, 'carillon:requeued', 1)
  if data ~= '' then rcall('HSET', key, 'data', data) end
  if fresh then rcall('HDEL', key, 'carillon:checkpoint') end
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
for i, letter in ipairs(realJson.decode(ARGV[5])) do answers[i] = requeue(unpack(letter)) end
return { 'OK', answers }
