-- Which runs of a schedule are open: held by a gate, or in BullMQ and not finished. A run that waits for its retry is open; one that was
-- removed is not.
--- @include "bullmq/removeJobKeys"
--- @include "run-ask"

-- Whether one more run may be open.
local function hasRoom(record)
  return record.maxConcurrent == 0 or #record.open < record.maxConcurrent
end

-- Whether anything hangs on which runs are open: runs that may overlap are only counted against their bound.
local function asksForOpen(record)
  return record.maxConcurrent > 0 or record.pauseAfter > 0 or #record.waiting > 0 or #record.open + 1 >= record.maxOpen
end

-- Forgets the runs that have ended, and counts failures in a row on the way. What is gone without a trace was no failure.
local function closeFinished(tag, entry, record, now, trouble)
  settleRow(tag, entry.identity, record)
  if not asksForOpen(record) then return end
  local open = {}
  for _, run in ipairs(record.open) do
    local runId = runIdOf(entry.id, run)
    -- pcall: a key of another type under that name is no run of ours.
    local job = redis.pcall('HMGET', entry.queue.prefix .. runId, 'timestamp', 'finishedOn', 'returnvalue')
    if (job.err or not job[1]) and gate.hasRun(tag, watch.bucketOf(entry.identity), entry.queue.name, runId) then
      open[#open + 1] = run
    elseif job.err or not job[1] then
      record.failures = 0
    elseif job[2] then
      -- A run that succeeded at last still carries the reason of its earlier failure.
      record.failures = job[3] and 0 or math.min(record.failures + 1, 255)
    elseif record.runTimeout > 0 and now - run.since >= record.runTimeout then
      writeRow(tag, entry.identity, record, { at = run.at, what = 'timed out', now = now, suffix = run.suffix })
      trouble[#trouble + 1] = 'TIMED_OUT ' .. entry.queueName .. ':' .. runId
    else
      open[#open + 1] = run
    end
  end
  record.open = open
end

-- A run that counted against the limit of its schedule does not come after all.
local function uncount(record, run)
  if run.kind ~= RUN_TICK and run.kind ~= RUN_CATCH_UP then return end
  countRuns(record, -1)
  setFlag(record, FLAG_LAST, false)
end

-- Takes one run back that no worker has fetched yet. True when it was one.
local function withdraw(tag, entry, record, run, now, reason)
  local prefix = entry.queue.prefix
  local runId = runIdOf(entry.id, run)
  local bucket = watch.bucketOf(entry.identity)
  local held = redis.call('HGET', tag .. ':' .. bucket .. ':jobs', entry.queue.name .. ':' .. runId)
  if held then
    dropPending(tag, bucket, entry.queue.name .. ':' .. runId, decodeRecord(held), entry.queue.name)
  elseif rcall('LREM', prefix .. 'wait', 1, runId) + rcall('ZREM', prefix .. 'prioritized', runId) == 0 then
    return false
  else
    removeJobKeys(prefix .. runId)
  end
  watch.latch(tag, entry.queue.name .. ':' .. runId, 'cancelled', reason, now)
  rcall('XADD', entry.queue.events, 'MAXLEN', '~', maxEventsOf(entry.queue), '*', 'event', 'removed', 'jobId', runId, 'prev', 'waiting')
  writeRow(tag, entry.identity, record, { at = run.at, what = 'cancelled', now = now, suffix = run.suffix, reason = reason })
  uncount(record, run)
  return true
end

-- cancelOther: runs that no worker has fetched, in the queue or waiting here, give way to the tick that comes; the worker
-- that has one is asked to stop, if it is one of ours. The tick waits until it has.
local function makeRoom(tag, entry, record, now)
  local ticks, others, open = {}, {}, {}
  for _, run in ipairs(record.waiting) do
    local list = run.kind == RUN_TICK and ticks or others
    list[#list + 1] = run
  end
  -- Behind runs of the past the tick has to wait anyway.
  local tooMany = #others == 0 and #record.open - record.maxConcurrent + 1 or 0
  for _, run in ipairs(record.open) do
    if tooMany > 0 and withdraw(tag, entry, record, run, now, 'overlap') then
      tooMany = tooMany - 1
    else
      open[#open + 1] = run
    end
  end
  record.open = open
  for i = 1, math.min(tooMany, #open) do
    askWorker(tag, entry.queueName, entry.queue.prefix, runIdOf(entry.id, open[i]), 'cancel', 'overlap', now)
  end
  if #open + #others >= record.maxOpen then return end
  for _, run in ipairs(ticks) do
    writeRow(tag, entry.identity, record, { at = run.at, what = 'cancelled', now = now, reason = 'overlap' })
    uncount(record, run)
  end
  record.waiting = others
end
