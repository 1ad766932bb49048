-- Puts runs into BullMQ queues by BullMQ's own Lua, a batch at a time: one paused check, one push and one marker a queue.
-- storeJob encodes its options table by cjson, which would rewrite numbers and []; the shadow hands it the client's text.
local rcall = redis.call
local realJson = cjson
local cjson = {
  encode = function(value)
    if type(value) == 'table' and value.raw then return value.raw end
    return realJson.encode(value)
  end,
  decode = realJson.decode,
}

--- @include "bullmq/storeJob"
--- @include "bullmq/addJobWithPriority"
--- @include "bullmq/addJobInTargetList"
--- @include "bullmq/isQueuePausedOrMaxed"
--- @include "bullmq/getOrSetMaxEvents"
--- @include "bullmq/setDeduplicationKey"
--- @include "watch"

-- BullMQ's keys that enqueueing touches, with the types they may have.
local QUEUE_KEYS = {
  wait = 'list', active = 'list', prioritized = 'zset', marker = 'zset', events = 'stream', meta = 'hash', pc = 'string',
}
-- LPUSH takes this many ids a call: Lua's unpack has a limit near 7,900.
local PUSH_MAX = 500

local openQueues = {}

-- The queue's state for this call: its keys, whether a key has the wrong type, and what is to be pushed at the end.
local function openQueue(base, name)
  local queue = openQueues[name]
  if queue then return queue end
  local prefix = base .. name .. ':'
  queue = { name = name, prefix = prefix, events = prefix .. 'events', fifo = {}, lifo = {}, waiting = {}, count = 0 }
  openQueues[name] = queue
  for key, wanted in pairs(QUEUE_KEYS) do
    local found = rcall('TYPE', prefix .. key).ok
    -- An empty list is none: workers have runs of this queue.
    if key == 'active' and found == 'list' then queue.working = true end
    if found ~= 'none' and found ~= wanted then
      queue.broken = key .. ' is a ' .. found .. ', BullMQ needs a ' .. wanted
      return queue
    end
  end
  return queue
end

-- Decimal texts of ms, made once for each value: the runs of a herd share theirs. (%d takes 64 bits here, and far less
-- time than %.0f, or than Redis takes to print a number that it is handed.)
local msTexts = {}
local function msText(ms)
  local text = msTexts[ms]
  if not text then
    text = string.format('%d', ms)
    msTexts[ms] = text
  end
  return text
end

-- What marks a run as ours, so that a repeat is recognised: namespace, scheduled time, incarnation.
local markHeads = {}
local function runMark(namespace, scheduledFor, inc)
  local head = markHeads[scheduledFor]
  if not head then
    head = namespace .. ' ' .. msText(scheduledFor) .. ' '
    markHeads[scheduledFor] = head
  end
  return head .. string.format('%d', inc)
end

-- What follows is read from keys that people may have written: no value in them may raise between the first run of a
-- call that is stored and the last one that is pushed, or those in between would stand in BullMQ unseen for ever.
local function maxEventsOf(queue)
  if not queue.maxEvents then
    local found = tostring(getOrSetMaxEvents(queue.prefix .. 'meta'))
    queue.maxEvents = #found < 16 and string.match(found, '^%d+$') or 10000
  end
  return queue.maxEvents
end

local function isPaused(queue)
  if queue.paused == nil then
    local known, paused = pcall(isQueuePausedOrMaxed, queue.prefix .. 'meta', queue.prefix .. 'active')
    queue.paused = known and paused
  end
  return queue.paused
end

local function problemText(problem)
  return tostring(type(problem) == 'table' and problem.err or problem)
end

-- The options text of a run: the client's own, with our mark spliced in.
local function runOptions(opts, mark)
  if opts == '' or string.find(opts, '^{%s*}$') then return '{"attempts":0,"carillon":"' .. mark .. '"}' end
  return substring(opts, 1, -2) .. ',"carillon":"' .. mark .. '"}'
end

-- Whether JSON.parse would take it as an object; cjson by itself takes NaN, 0x10, 01 and line ends in strings too.
local strictJson
local function isJsonObject(text)
  if string.byte(text, 1) ~= 123 or string.byte(text, -1) ~= 125 then return false end
  if not strictJson then
    strictJson = realJson.new()
    strictJson.decode_invalid_numbers(false)
  end
  if not pcall(strictJson.decode, text) then return false end
  if not string.find(text, '[%z\1-\31]') then return true end
  for literal in string.gmatch(string.gsub(text, '\\.', ''), '"([^"]*)"') do
    if string.find(literal, '[%z\1-\31]') then return false end
  end
  return true
end

-- One options text is judged once a call: most runs share theirs. BullMQ's workers must be able to read it.
local judgedOptions = { [''] = true }
local function optionsAreReadable(opts)
  local known = judgedOptions[opts]
  if known == nil then
    known = isJsonObject(opts)
    judgedOptions[opts] = known
  end
  return known
end

-- The one options table that storeJob is handed, run after run. A number among its values would be printed by the
-- slow way of doubles in each.
local runOptionsTable = { delay = '0' }

-- Stores the run's hash; it becomes visible with flushQueues. False and the reason when BullMQ's Lua raised: then it is
-- undone, since nobody can have fetched it yet.
local function storeRun(queue, key, runId, mark, name, data, opts, timestamp, priority, lifo, deduplication)
  runOptionsTable.raw = runOptions(opts, mark)
  runOptionsTable.priority = priority == 0 and '0' or priority
  runOptionsTable.de = deduplication
  local stored, problem = pcall(storeJob, queue.events, key, runId, name, data, runOptionsTable, msText(timestamp))
  if stored and priority > 0 then
    stored, problem = pcall(addJobWithPriority, queue.prefix .. 'marker', queue.prefix .. 'prioritized', priority, runId, queue.prefix .. 'pc',
      isPaused(queue))
  end
  if not stored then
    rcall('DEL', key)
    return false, problemText(problem)
  end
  if priority == 0 then
    local list = lifo and queue.lifo or queue.fifo
    list[#list + 1] = runId
  end
  queue.waiting[#queue.waiting + 1] = runId
  return true
end

-- The same for a decoded record that becomes a run of its own id.
local function storeRecord(queue, jobId, record, mark)
  return storeRun(queue, queue.prefix .. jobId, jobId, mark, record.name, record.data, record.opts, record.timestamp, record.priority,
    record.lifo, record.deduplication)
end

local function pushRuns(queue, command, ids)
  for from = 1, #ids, PUSH_MAX do
    rcall(command, queue.prefix .. 'wait', unpack(ids, from, math.min(from + PUSH_MAX - 1, #ids)))
  end
end

-- Makes all stored runs of this call visible to workers.
local function flushQueues()
  for _, queue in pairs(openQueues) do
    local plain = #queue.fifo + #queue.lifo
    if plain > 0 then
      pushRuns(queue, 'LPUSH', queue.fifo)
      pushRuns(queue, 'RPUSH', queue.lifo)
      addBaseMarkerIfNeeded(queue.prefix .. 'marker', isPaused(queue))
    end
    -- The last event of the batch trims for all of them.
    local waiting = queue.waiting
    for i = 1, #waiting - 1 do rcall('XADD', queue.events, '*', 'event', 'waiting', 'jobId', waiting[i]) end
    if #waiting > 0 then
      rcall('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'waiting', 'jobId', waiting[#waiting])
    end
    -- ARGV[1] is the tag in every script. Most namespaces have nothing that others wait for.
    if meta.watched and #waiting > 0 then watch.hangRuns(ARGV[1], queue, clockNow()) end
    queue.fifo, queue.lifo, queue.waiting = {}, {}, {}
  end
end
