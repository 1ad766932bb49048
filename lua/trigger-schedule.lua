-- name     trigger-schedule
-- purpose  runs a schedule now, beside its ticks: at once, or in turn behind its open runs
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 namespace text; 8 suffix text; 9 inTurn bool
-- returns  OK record now | NOT_FOUND | NOT_A_SCHEDULE | QUEUE_BROKEN reason | BACKLOG | ID_TAKEN | WRONG_LAYOUT | BAD_RECORD
-- cost     O(open runs), 64 at most

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "edit"
--- @include "serve-schedule"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
if record.kind ~= KIND_SCHEDULE then return { 'NOT_A_SCHEDULE' } end
local queue = openQueue(base, queueName)
if queue.broken then return { 'QUEUE_BROKEN', queue.broken } end
local entry = { queue = queue, queueName = queueName, id = jobId, identity = identity, change = { bucket = tonumber(bucket) } }
closeFinished(tag, entry, record, now, {})
local run = { at = now, since = now, kind = RUN_TRIGGER, suffix = ARGV[8] }
if #record.open + #record.waiting >= record.maxOpen then return { 'BACKLOG' } end
if ARGV[9] == '1' and (#record.waiting > 0 or not hasRoom(record)) then
  record.waiting[#record.waiting + 1] = run
  lookAtWaiting(record, now)
else
  local outcome = startRun(tag, ARGV[7], entry, record, run, now)
  if outcome == 'ID_TAKEN' then return { 'ID_TAKEN' } end
  if outcome ~= 'DONE' then return { 'BAD_RECORD', outcome } end
  flushQueues()
  record.open[#record.open + 1] = run
  writeRow(tag, identity, record, { at = now, what = RUN_WORDS[RUN_TRIGGER], now = now, suffix = run.suffix })
end
return storeEdited(record, now)
