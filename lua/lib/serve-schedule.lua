-- What a schedule does when its time has come: closes runs that BullMQ finished, starts what waits, and judges the
-- tick that is due by the overlap policy (design: overlap is decided at dispatch from the record's open runs).
--- @include "runs"
--- @include "ledger"
local OVERLAP_SKIP, OVERLAP_BUFFER_ONE, OVERLAP_BUFFER_ALL, OVERLAP_CANCEL_OTHER, OVERLAP_ALLOW = 0, 1, 2, 3, 4
local MISSED_ALL = 2
-- Plain workers tell nobody that a run ended: a schedule whose runs wait for that is looked at this often (ms).
local RECHECK = 250

-- Whether anything hangs on which runs are open: runs that may overlap are only counted against their bound.
local function asksForOpen(record, open)
  return record.overlap ~= OVERLAP_ALLOW or record.maxConcurrent > 0 or record.pauseAfter > 0 or record.waiting ~= ''
    or #open + 1 >= record.maxOpen
end

-- Keeps the runs that are still open: their hash stands and is not finished. Counts failures in a row on the way.
local function closeFinished(queue, id, record)
  local known = readRuns(record.open)
  if not asksForOpen(record, known) then return known end
  local open = {}
  for _, run in ipairs(known) do
    local key = queue.prefix .. runIdOf(id, run)
    -- pcall: a key of another type under that name is no run of ours.
    local job = redis.pcall('HMGET', key, 'timestamp', 'finishedOn', 'failedReason')
    if not job.err and job[1] then
      if not job[2] then
        open[#open + 1] = run
      elseif job[3] then
        record.failures = math.min(record.failures + 1, 255)
      else
        record.failures = 0
      end
    end
  end
  return open
end

-- Puts one run into the queue. 'DONE', or why not.
local function startRun(namespace, entry, record, run)
  local queue = entry.queue
  local runId = runIdOf(entry.id, run)
  local key = queue.prefix .. runId
  local mark = runMark(namespace, run.at, record.inc)
  -- The pop asks for all its ticks in one EXISTS; any other run asks for itself.
  if not (entry.free and run.kind == RUN_TICK) and redis.call('EXISTS', key) == 1 then
    local opts = redis.call('TYPE', key).ok == 'hash' and redis.call('HGET', key, 'opts')
    return opts and string.find(opts, '"carillon":"' .. mark .. '"', 1, true) and 'DONE' or 'ID_TAKEN'
  end
  local stored, problem = storeRun(queue, key, runId, mark, record.name, record.data, record.opts, run.at, record.priority,
    record.lifo)
  return stored and 'DONE' or 'BAD_RECORD ' .. tostring(problem)
end

-- Whether a run that waits may start now: catch-up and backfill one at a time, unless runs may overlap anyway.
local function mayStart(record, open, run)
  if run.kind == RUN_CATCH_UP and record.missed ~= MISSED_ALL and record.overlap == OVERLAP_ALLOW then return true end
  if run.kind ~= RUN_TICK then return #open == 0 end
  return #open < math.max(1, record.maxConcurrent)
end

-- start, buffer, or the reason why the tick is skipped.
local function judgeTick(record, open, waiting)
  if #open + #waiting >= record.maxOpen then return 'backlog' end
  if record.overlap == OVERLAP_ALLOW then
    return (record.maxConcurrent == 0 or #open < record.maxConcurrent) and 'start' or 'buffer'
  end
  if #waiting == 0 and #open < math.max(1, record.maxConcurrent) then return 'start' end
  if record.overlap == OVERLAP_SKIP then return 'overlap' end
  if record.overlap ~= OVERLAP_BUFFER_ALL then
    for _, run in ipairs(waiting) do
      if run.kind == RUN_TICK then return 'overlap' end
    end
  end
  return 'buffer'
end

-- cancelOther with plain workers: a run that no worker has fetched yet gives way; one that runs does not.
local function cancelWaiting(queue, id, open)
  local left = {}
  for _, run in ipairs(open) do
    local runId = runIdOf(id, run)
    local removed = redis.call('LREM', queue.prefix .. 'wait', 1, runId) + redis.call('ZREM', queue.prefix .. 'prioritized', runId)
    if removed > 0 then
      redis.call('DEL', queue.prefix .. runId)
      redis.call('XADD', queue.events, '*', 'event', 'removed', 'jobId', runId, 'prev', 'waiting')
    else
      left[#left + 1] = run
    end
  end
  return left
end

-- Serves one due schedule; changes `record`, starts runs, writes ledger rows. Returns how many runs started, and an
-- outcome that sets the whole schedule aside, if BullMQ's Lua raised on it.
local function serveSchedule(tag, namespace, entry, record, now, trouble)
  local queue, id = entry.queue, entry.id
  local open = closeFinished(queue, id, record)
  local waiting = readRuns(record.waiting)
  local started = 0

  local function start(run)
    local outcome = startRun(namespace, entry, record, run)
    if string.sub(outcome, 1, 10) == 'BAD_RECORD' then return outcome end
    if outcome == 'ID_TAKEN' then
      -- Only this run is set aside; the schedule goes on.
      writeRow(tag, entry.identity, record, { at = run.at, what = 'quarantined', now = now, suffix = run.suffix, reason = 'ID_TAKEN' })
      trouble[#trouble + 1] = 'ID_TAKEN ' .. entry.queueName .. ':' .. runIdOf(id, run)
      return nil
    end
    started = started + 1
    record.count = run.kind == RUN_TICK and record.count + 1 or record.count
    record.skips = 0
    open[#open + 1] = run
    writeRow(tag, entry.identity, record, { at = run.at, what = RUN_WORDS[run.kind], now = now, suffix = run.suffix })
    return nil
  end

  while #waiting > 0 and mayStart(record, open, waiting[1]) do
    local problem = start(table.remove(waiting, 1))
    if problem then return started, problem end
  end

  if record.cur > 0 and record.curFire <= now and not hasFlag(record.flags, FLAG_OVERDUE) then
    local run = { at = record.cur, kind = RUN_TICK, suffix = '' }
    if record.overlap == OVERLAP_CANCEL_OTHER and #open > 0 then open = cancelWaiting(queue, id, open) end
    local verdict = judgeTick(record, open, waiting)
    if verdict == 'start' then
      local problem = start(run)
      if problem then return started, problem end
    elseif verdict == 'buffer' then
      waiting[#waiting + 1] = run
    else
      record.skips = math.min(record.skips + 1, 65535)
      writeRow(tag, entry.identity, record, { at = run.at, what = 'skipped', now = now, reason = verdict })
      if record.skips == 3 then trouble[#trouble + 1] = 'SKIPPING ' .. entry.identity .. ' ' .. verdict end
    end
    record.last = record.cur
    record.cur, record.curFire = record.next, record.nextFire
    record.next, record.nextFire = 0, 0
  end

  record.open, record.waiting = packRuns(open), packRuns(waiting)
  record.check = #waiting > 0 and now + RECHECK or 0
  if record.pauseAfter > 0 and record.failures >= record.pauseAfter then
    record.state = STATE_PAUSED
    record.note = record.failures .. ' runs failed in a row'
    trouble[#trouble + 1] = 'PAUSED ' .. entry.identity .. ' ' .. record.note
  end
  return started, nil
end
