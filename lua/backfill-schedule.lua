-- name     backfill-schedule
-- purpose  gives a schedule ticks of the past to run, one at a time, in order
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 ticks json; 8 suffix text
-- returns  OK record now | NOT_FOUND | NOT_A_SCHEDULE | BACKLOG waiting | WRONG_LAYOUT | BAD_RECORD
-- cost     O(ticks), 1000 at most

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "edit"
--- @include "runs"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.kind ~= KIND_SCHEDULE then return { 'NOT_A_SCHEDULE' } end
local ticks = cjson.decode(ARGV[7])
local waiting = readRuns(record.waiting)
if #waiting + #ticks > MAX_WAITING then return { 'BACKLOG', tostring(#waiting) } end
for _, tick in ipairs(ticks) do
  -- A run whose job BullMQ still holds was run before; only a rerun, which has a name of its own, repeats it.
  local run = { at = tick, kind = RUN_BACKFILL, suffix = ARGV[8] }
  if redis.call('EXISTS', base .. queueName .. ':' .. runIdOf(jobId, run)) == 0 then waiting[#waiting + 1] = run end
end
record.waiting = packRuns(waiting)
if #waiting > 0 then record.check = now end
return storeEdited(record, now)
