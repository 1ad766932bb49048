-- name     backfill-schedule
-- purpose  gives a schedule ticks of the past to run, in order: one at a time, or beside each other
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 ticks json; 8 suffix text; 9 beside bool; 10 dry bool
-- returns  OK record now ticks(list of those that run) | NOT_FOUND | NOT_A_SCHEDULE | BACKLOG waiting | WRONG_LAYOUT | BAD_RECORD
-- cost     O(ticks), 1000 at most
-- A request that is sent again is answered without the list.

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "edit"

local now = clockNow()
local dry = ARGV[10] == '1'
local record, reply = openRecord(now, dry)
if not record then return reply end
if record.kind ~= KIND_SCHEDULE then return { 'NOT_A_SCHEDULE' } end
local suffix, kind = ARGV[8], ARGV[9] == '1' and RUN_BACKFILL_BESIDE or RUN_BACKFILL

-- What ran before, as far as anybody remembers: the ledger, the runs at hand, and below BullMQ's own hashes. A rerun asks
-- for its own runs alone, which its suffix names; without one any run of the tick counts. A triggered run is no tick's.
local known = {}
local function know(at, own, word)
  if suffix ~= '' and own ~= suffix or word == RUN_WORDS[RUN_TRIGGER] then return end
  known[at] = true
end
for _, row in ipairs(redis.call('HVALS', tag .. ':ledger:' .. identity)) do
  local at, what, own = string.match(row, '^(%d+)|([^|]*)|%d+|([^|]*)|')
  for _, word in pairs(RUN_WORDS) do
    if what == word then know(at, own, word) end
  end
end
for _, runs in ipairs({ record.open, record.waiting }) do
  for _, run in ipairs(runs) do know(string.format('%.0f', run.at), run.suffix, RUN_WORDS[run.kind]) end
end
-- Ticks from here on are the schedule's own to judge.
local pending = record.cur > 0 and record.cur or math.max(record.last, record.timestamp) + 1

local ticks, waiting = {}, record.waiting
for _, tick in ipairs(cjson.decode(ARGV[7])) do
  local run = { at = tick, since = now, kind = kind, suffix = suffix }
  local stands = known[string.format('%.0f', tick)]
    or redis.call('EXISTS', base .. queueName .. ':' .. runIdOf(jobId, run)) == 1
  if tick < pending and not stands then
    ticks[#ticks + 1] = tick
    waiting[#waiting + 1] = run
  end
end
if dry then return { 'OK', encodeRecord(record), now, ticks } end
if #ticks > 0 then
  if #waiting > MAX_WAITING then return { 'BACKLOG', tostring(#waiting - #ticks) } end
  lookAtWaiting(record, now)
end
local answer = storeEdited(record, now)
answer[4] = ticks
return answer
