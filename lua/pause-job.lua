-- name     pause-job
-- purpose  keeps a pending job or a schedule from firing until it is resumed, with a note why
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 note text
-- returns  OK record now | NOT_FOUND | WRONG_LAYOUT | BAD_RECORD
-- cost     O(log N)

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "edit"

local now = clockNow()
local record, reply = openRecord(now)
if not record then return reply end
countRecord(queueName, record, -1)
record.state = STATE_PAUSED
record.note = ARGV[7] ~= '' and ARGV[7] or nil
countRecord(queueName, record, 1)
return storeEdited(record, now)
