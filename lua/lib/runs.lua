-- The runs of a schedule that are open (in BullMQ, not finished) or wait for their turn, oldest first. One run:
-- >I6 scheduled for, I6 since (when it went into the queue, or began to wait), B kind, B suffix length, suffix;
-- its id in BullMQ is <schedule>@<scheduled for><suffix>. Included by the record's codec.
local RUN_TICK, RUN_CATCH_UP, RUN_BACKFILL, RUN_TRIGGER, RUN_BACKFILL_BESIDE = 0, 1, 2, 3, 4
local RUN_WORDS = { [0] = 'dispatched', 'caught up', 'backfilled', 'triggered', 'backfilled' }
-- Backfill and the planner give a record no more waiting runs than this.
local MAX_WAITING = 1000
-- What the lengths in the header hold.
local RUNS_MAX = 65535
-- What four bytes hold.
local COUNT_MAX = 4294967295

-- Raises on anything that is no list of runs.
local function readRuns(text)
  local runs, p = {}, 1
  while p <= #text do
    local run = {}
    local length
    run.at, run.since, run.kind, length, p = unpackBytes('>I6I6BB', text, p)
    packedTime(math.max(run.at, run.since))
    if not RUN_WORDS[run.kind] then error('unknown kind of run ' .. run.kind) end
    if p + length > #text + 1 then error('the runs do not fit the record') end
    run.suffix = substring(text, p, p + length - 1)
    p = p + length
    runs[#runs + 1] = run
  end
  return runs
end

local function packRuns(runs)
  local texts = {}
  for i, run in ipairs(runs) do
    texts[i] = packBytes('>I6I6BB', packedTime(run.at), packedTime(run.since), run.kind, #run.suffix) .. run.suffix
  end
  local text = table.concat(texts)
  if #text > RUNS_MAX then error('too many runs for a record') end
  return text
end

-- Counts runs against the limit of their schedule.
local function countRuns(record, step)
  record.count = math.max(0, math.min(record.count + step, COUNT_MAX))
end

local function runIdOf(scheduleId, run)
  return string.format('%s@%d%s', scheduleId, run.at, run.suffix)
end
