-- The runs of a schedule that are open (in BullMQ, not finished) or wait for their turn, oldest first. One run:
-- >I6 scheduled for, B kind, B suffix length, suffix; its id in BullMQ is <schedule>@<scheduled for><suffix>.
local RUN_TICK, RUN_CATCH_UP, RUN_BACKFILL, RUN_TRIGGER = 0, 1, 2, 3
local RUN_WORDS = { [0] = 'dispatched', 'caught up', 'backfilled', 'triggered' }
-- A record keeps no more waiting runs than this; the planner and backfill hand over the rest later.
local MAX_WAITING = 1000

local function readRuns(text)
  local runs, p = {}, 1
  while p <= #text do
    local run = {}
    local length
    run.at, run.kind, length, p = struct.unpack('>I6BB', text, p)
    run.suffix = string.sub(text, p, p + length - 1)
    p = p + length
    runs[#runs + 1] = run
  end
  return runs
end

local function packRuns(runs)
  local texts = {}
  for i, run in ipairs(runs) do texts[i] = struct.pack('>I6BB', run.at, run.kind, #run.suffix) .. run.suffix end
  return table.concat(texts)
end

local function runIdOf(scheduleId, run)
  return string.format('%s@%.0f%s', scheduleId, run.at, run.suffix)
end
