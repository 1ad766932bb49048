-- name     update-job
-- purpose  replaces the name, data, options or priority of a pending one-time job, or of a schedule's template
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 parts text; 8 name text; 9 data json; 10 options json; 11 priority number; 12 lifo bool; 13 deduplication text; 14 deadline bool; 15 before json
-- returns  OK record now | NOT_FOUND | CONFLICT | PAST_DEADLINE | WRONG_LAYOUT | BAD_RECORD
-- cost     O(log N)
-- `parts` names what to replace: n, d, o, p (priority and lifo). New options must hold the deduplication of the old
-- ones: its id is given, and another one is a CONFLICT; with b so are old options other than `before`.

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "edit"
--- @include "deadline"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
local parts = ARGV[7]
if string.find(parts, 'b', 1, true) and record.opts ~= ARGV[15] then return { 'CONFLICT' } end
if string.find(parts, 'n', 1, true) then record.name = ARGV[8] end
if string.find(parts, 'd', 1, true) then record.data = ARGV[9] end
if string.find(parts, 'o', 1, true) then
  local deduplication = hasFlag(record.flags, FLAG_DEDUP) and deduplicationOf(record)
  if (deduplication and deduplication.id or '') ~= ARGV[13] then return { 'CONFLICT' } end
  record.opts = ARGV[10]
  if record.kind == KIND_JOB then setFlag(record, FLAG_DEADLINE, ARGV[14] == '1') end
  if isPastDeadline(record) then return { 'PAST_DEADLINE' } end
end
if string.find(parts, 'p', 1, true) then
  record.priority = tonumber(ARGV[11])
  record.lifo = ARGV[12] == '1'
end
return storeEdited(record, now)
