-- The short way of a plain tick, most of what schedules do: due and not missed, its next one known, no run waits, and no
-- run of before is in its way. The record is not decoded and packed again: its fixed fields are put anew between what
-- stays. False sends it the long way, which would judge the same.
-- In a block of its own: a Lua function may have 200 locals.
local readPlainTick
do
local TICK_FIELDS, TICK_FIELDS_LENGTH = '>I6I6I6I6I6I6I4I4I4I4BBBBBBBI2I3I2I2', 68

-- Whether the one open run has ended; then also the failures in a row, as closeFinished counts them.
local function openRunEnded(entry, run, failures)
  local job = redis.pcall('HMGET', entry.queue.prefix .. runIdOf(entry.runId, run), 'timestamp', 'finishedOn', 'returnvalue')
  if job.err or not job[1] then
    return redis.pcall('HEXISTS', entry.change.at .. ':jobs', entry.queueName .. ':' .. runIdOf(entry.runId, run)) ~= 1, 0
  end
  if not job[2] then return false end
  return true, job[3] and 0 or math.min(failures + 1, 255)
end

-- The text of the open runs that stay beside the tick, and the failures in a row; nil when the long way must judge.
local function openBeside(entry, open, maxConcurrent, maxOpen, failures)
  if open == '' then return open, failures end
  local read, runs = pcall(readRuns, open)
  if not read then return nil end
  if maxConcurrent == 0 then
    if #runs + 1 >= maxOpen then return nil end
    return open, failures
  end
  if #runs > 1 then return nil end
  local ended, failed = openRunEnded(entry, runs[1], failures)
  if not ended then return nil end
  return '', failed
end

function readPlainTick(entry, now)
  local text = entry.text
  if #text < 20 + TICK_FIELDS_LENGTH then return false end
  local head, state, flags, inc, at, p = unpackBytes('>BBBI7I6', text)
  local requests = state % 16
  if head ~= FORMAT * 16 + KIND_SCHEDULE or state - requests ~= STATE_SCHEDULED * 16 then return false end
  if flags ~= 0 and flags ~= FLAG_VER then return false end
  local edited = flags == FLAG_VER and 7 or 0
  if #text < 20 + requests * 8 + edited + TICK_FIELDS_LENGTH then return false end
  local nameLength, dataLength
  nameLength, dataLength, p = unpackBytes('>BI3', text, p + requests * 8)
  local fieldsAt = p + edited
  local last, cur, curFire, next, nextFire, check, count, rows, grace, runTimeout, missed, overlap, maxOpen, maxConcurrent, keptRows,
    pauseAfter, failures, _, policiesLength, openLength, waitingLength, body = unpackBytes(TICK_FIELDS, text, fieldsAt)
  if rows >= OWED_ROW or cur == 0 or curFire > now or next == 0 or check > 0 or waitingLength > 0 or pauseAfter > 0 or maxOpen == 0 then return false end
  if overlap == OVERLAP_CANCEL_OTHER or math.max(at, last, cur, curFire, next, nextFire) > LAST_TIME then return false end
  if curFire + grace < entry.change.range.servedFrom or (missed ~= MISSED_ALL and nextFire <= now) then return false end

  local dataAt, openAt = body + nameLength, #text + 1 - openLength
  local optsAt, policiesAt = dataAt + dataLength, openAt - policiesLength
  if optsAt > policiesAt then return false end
  local opts = substring(text, optsAt, policiesAt - 1)
  if not optionsAreReadable(opts) then return false end
  local open, failed = openBeside(entry, substring(text, openAt), maxConcurrent, maxOpen, failures)
  if not open then return false end

  entry.id, entry.runId, entry.tick = entry.runId, entry.runId .. '@' .. msText(cur), cur
  entry.inc, entry.fire, entry.opts = inc, curFire, opts
  entry.name, entry.data = substring(text, body, dataAt - 1), substring(text, dataAt, optsAt - 1)
  if keptRows > 0 then rows = rows + OWED_ROW end
  open = open .. packBytes('>I6I6BB', cur, now, RUN_TICK, 0)
  entry.successorFire = nextFire
  entry.successor = substring(text, 1, fieldsAt - 1)
    .. packBytes(TICK_FIELDS, cur, next, nextFire, 0, 0, 0, math.min(count + 1, COUNT_MAX), rows, grace, runTimeout, missed, overlap,
      maxOpen, maxConcurrent, keptRows, pauseAfter, failed, 0, policiesLength, #open, 0)
    .. substring(text, body, openAt - 1) .. open
  return true
end
end
