-- What a schedule does when its time has come: closes runs that BullMQ finished, starts what waits, and judges the
-- tick that is due by the overlap policy (design: overlap is decided at dispatch from the record's open runs).
--- @include "ledger"
--- @include "open-runs"
--- @include "our-run"
--- @include "follow-tick"
-- Plain workers tell nobody that a run ended: a schedule whose runs wait for that is looked at again and again (ms), the
-- less often the longer the newest open run has been open, so that a queue without workers costs little.
local LOOK_MIN, LOOK_MAX, LOOK_PART = 250, 15000, 8
-- So many ticks skipped in a row are worth an alert.
local SKIPS_TOLD = 3

-- Puts one run into the queue, or into its gate. 'DONE', or why not.
local function startRun(tag, namespace, entry, record, run, now)
  local queue = entry.queue
  local runId = runIdOf(entry.id, run)
  local key = queue.prefix .. runId
  local mark = runMark(namespace, run.at, record.inc)
  -- The pop asks for the pending ticks of its batch in one EXISTS; any other run asks for itself.
  if not (run.pending and entry.free) and redis.call('EXISTS', key) == 1 then
    return isOurRun(key, mark) and 'DONE' or 'ID_TAKEN'
  end
  if gate.of(tag, entry.queueName) then
    gate.holdRun(tag, entry.change.bucket, entry.queueName, runId, record, run.at, now)
    return 'DONE'
  end
  local stored, problem = storeRun(queue, key, runId, mark, record.name, record.data, record.opts, run.at, record.priority,
    record.lifo)
  return stored and 'DONE' or 'BAD_RECORD ' .. tostring(problem)
end

-- Whether the first of the runs that wait may start. Runs of the past go one at a time among themselves, unless a
-- person asked for them beside each other; the one of `latest` is a tick like others, come late.
local function mayStart(record, run)
  if #record.open >= record.maxOpen then return false end
  if run.kind == RUN_BACKFILL_BESIDE then return true end
  if not hasRoom(record) then return false end
  if run.kind ~= RUN_BACKFILL and (run.kind ~= RUN_CATCH_UP or record.missed ~= MISSED_ALL) then return true end
  for _, other in ipairs(record.open) do
    if other.kind == RUN_CATCH_UP or other.kind == RUN_BACKFILL then return false end
  end
  return true
end

-- When the runs that wait are looked at again; 0 when none does.
local function nextLook(record, now)
  if #record.waiting == 0 then return 0 end
  local newest = 0
  for _, run in ipairs(record.open) do newest = math.max(newest, run.since) end
  local age = #record.open > 0 and now - newest or 0
  -- It waits for another schedule's run, whose end brings it forward.
  if record.after and #record.open == 0 then age = now - record.waiting[1].since end
  return now + math.floor(math.max(LOOK_MIN, math.min(age / LOOK_PART, LOOK_MAX)))
end

local function hasWaitingTick(record)
  for _, run in ipairs(record.waiting) do
    if run.kind == RUN_TICK then return true end
  end
  return false
end

-- start, buffer, or the reason why the tick is skipped.
local function judgeTick(record)
  if #record.open + #record.waiting >= record.maxOpen then return 'backlog' end
  if record.overlap == OVERLAP_ALLOW then return hasRoom(record) and 'start' or 'buffer' end
  if #record.waiting == 0 and hasRoom(record) then return 'start' end
  if record.overlap == OVERLAP_SKIP then return 'overlap' end
  if record.overlap ~= OVERLAP_BUFFER_ALL and hasWaitingTick(record) then return 'overlap' end
  return 'buffer'
end

-- Serves one due schedule; changes `record`, starts runs, writes ledger rows. Returns how many runs started, and an
-- outcome that sets the whole schedule aside, if BullMQ's Lua raised on it.
local function serveSchedule(tag, namespace, entry, record, now, trouble)
  local started, problem = 0, nil

  local function note(run, what, reason)
    writeRow(tag, entry.identity, record, { at = run.at, what = what, now = now, suffix = run.suffix, reason = reason })
  end

  -- True when the run is in the queue.
  local function start(run)
    local outcome = startRun(tag, namespace, entry, record, run, now)
    if outcome == 'DONE' then
      started = started + 1
      run.since = now
      record.open[#record.open + 1] = run
      note(run, RUN_WORDS[run.kind])
      return true
    elseif outcome == 'ID_TAKEN' then
      -- Only this run is set aside; the schedule goes on.
      note(run, 'quarantined', outcome)
      -- What stands under its id ends as it likes: that is not this run's end.
      local identity = entry.queueName .. ':' .. runIdOf(entry.id, run)
      if redis.call('SISMEMBER', tag .. ':watched', entry.identity) == 1 then watch.lookAt(tag, identity, now) end
      watch.latch(tag, identity, 'skipped', 'quarantined: ' .. outcome, now)
      trouble[#trouble + 1] = 'ID_TAKEN ' .. entry.queueName .. ':' .. runIdOf(entry.id, run)
    else
      problem = outcome
    end
    return false
  end

  local function skip(run, reason)
    record.skips = math.min(record.skips + 1, 65535)
    if record.skips == SKIPS_TOLD then trouble[#trouble + 1] = 'SKIPPING ' .. entry.identity .. ' ' .. reason end
    note(run, 'skipped', reason)
  end

  -- run, wait for the runs that it follows, or skip and why. Runs that a person asked for follow nothing.
  local function followed(run)
    if not record.after or (run.kind ~= RUN_TICK and run.kind ~= RUN_CATCH_UP) then return 'run' end
    return follow.judge(tag, entry, record, run.at)
  end

  local function serveTick()
    local run = { at = record.cur, since = now, kind = RUN_TICK, suffix = '', pending = true }
    if record.overlap == OVERLAP_CANCEL_OTHER then makeRoom(tag, entry, record, now) end
    local verdict = judgeTick(record)
    if verdict == 'start' then
      local what, why = followed(run)
      verdict = (what == 'run' and 'start') or (what == 'wait' and 'buffer') or why
    end
    local comes = verdict == 'buffer'
    if verdict == 'buffer' then
      record.waiting[#record.waiting + 1] = run
    elseif verdict == 'start' then
      comes = start(run)
    else
      skip(run, verdict)
    end
    if comes then
      countRuns(record, 1)
      record.skips = 0
    else
      -- A limit counts runs: one more tick may follow.
      setFlag(record, FLAG_LAST, false)
    end
    record.last = record.cur
    record.cur, record.curFire = record.next, record.nextFire
    record.next, record.nextFire = 0, 0
  end

  closeFinished(tag, entry, record, now, trouble)
  if record.pauseAfter > 0 and record.failures >= record.pauseAfter then
    record.state = STATE_PAUSED
    record.note = record.failures .. ' runs failed in a row'
    trouble[#trouble + 1] = 'PAUSED ' .. entry.identity .. ' ' .. record.note
    return started, nil
  end
  while not problem and #record.waiting > 0 and mayStart(record, record.waiting[1]) do
    local what, why = followed(record.waiting[1])
    if what == 'wait' then break end
    local run = table.remove(record.waiting, 1)
    if what == 'run' then
      start(run)
    else
      skip(run, why)
      uncount(record, run)
    end
  end
  if not problem and record.cur > 0 and record.curFire <= now and not hasFlag(record.flags, FLAG_OVERDUE) then serveTick() end
  record.check = nextLook(record, now)
  return started, problem
end
