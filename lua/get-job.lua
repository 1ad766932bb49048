-- name     get-job
-- purpose  reads one identity wherever our tier knows it
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text
-- returns  OK now record quarantined endedAt how last | WRONG_LAYOUT
-- cost     O(1)

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"

local tag, layout, bucket, identity = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local at = tag .. ':' .. bucket
local record = redis.call('HGET', at .. ':jobs', identity)
local endedAt, how, last
for _, short in ipairs({ false, true }) do
  if not endedAt then
    local _
    endedAt, how, _, last = readSpent(tag, bucket, identity, short)
  end
end
return { 'OK', clockNow(), record or '', redis.call('HGET', at .. ':quarantine', identity) or '', endedAt or 0, how or 0, last or 0 }
