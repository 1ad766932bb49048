-- name     change-waiting-run
-- purpose  takes a run back that waits for its turn in its schedule's record; any other change of it is refused
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text(the schedule's); 6 request bytes; 7 run id text; 8 verb text(cancel, resume, change); 9 reason text
-- returns  OK record now | NOT_FOUND | IN_TURN | NOT_PAUSED place | WRONG_LAYOUT | BAD_RECORD
-- cost     O(waiting runs), 1000 at most

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "edit"
--- @include "ledger"
--- @include "open-runs"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.kind ~= KIND_SCHEDULE then return { 'NOT_FOUND' } end
local place
for i, run in ipairs(record.waiting) do
  if runIdOf(jobId, run) == ARGV[7] then place = i end
end
if not place then return { 'NOT_FOUND' } end
if ARGV[8] == 'resume' then return { 'NOT_PAUSED', 'waits for its turn' } end
if ARGV[8] ~= 'cancel' then return { 'IN_TURN' } end
local run = table.remove(record.waiting, place)
if #record.waiting == 0 then record.check = 0 end
writeRow(tag, identity, record, { at = run.at, what = 'cancelled', now = now, suffix = run.suffix, reason = ARGV[9] })
uncount(record, run)
writeHistory(tag, now, queueName .. ':' .. ARGV[7], run.at, 'cancelled', ARGV[9])
watch.latch(tag, queueName .. ':' .. ARGV[7], 'cancelled', ARGV[9], now)
return storeEdited(record, now)
