-- name     sweep-bucket
-- purpose  holds one page of a bucket's records against their indexes and repairs what disagrees; the record is the truth
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 owned bytes; 4 bucket number; 5 cursor text; 6 count number
-- returns  OK cursor repaired(list of identity) | FENCED | WRONG_LAYOUT
-- cost     O(count log N), count <= 200

local tag, layout, bucket = ARGV[1], ARGV[2], tonumber(ARGV[4])

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "index"
--- @include "pending"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
readOwned(ARGV[3])
local range = ownedRange(bucket)
if not range or not holdsFence(tag, range, bucket) then return { 'FENCED' } end
local now = clockNow()
local at = tag .. ':' .. bucket

local function isIndexed(identity, record)
  local fireAt = fireTimeOf(record)
  local due = tonumber(redis.call('ZSCORE', at .. ':due', identity) or nil)
  local parked = redis.call('ZSCORE', at .. ':parked', identity)
  local planned = redis.call('ZSCORE', at .. ':plan', identity)
  if (record.state == STATE_PARKED) ~= (parked and true or false) then return false end
  if record.state ~= STATE_SCHEDULED then return not due and not planned end
  if record.kind == KIND_JOB then return due == fireAt end
  -- A missed tick stands on plan alone until the planner has judged it.
  if due and due ~= fireAt then return false end
  return due or planned
end

local page = redis.call('HSCAN', at .. ':jobs', ARGV[5], 'COUNT', ARGV[6])
local repaired = {}
for i = 1, #page[2], 2 do
  local identity = page[2][i]
  local read, record = pcall(decodeRecord, page[2][i + 1])
  if read and not isIndexed(identity, record) then
    if record.kind == KIND_SCHEDULE and record.state == STATE_SCHEDULED then
      redis.call('ZREM', at .. ':due', identity)
      redis.call('ZREM', at .. ':parked', identity)
      redis.call('ZADD', at .. ':plan', now, identity)
      lowerHead('p' .. bucket, now)
    else
      storePending(tag, bucket, identity, record, now)
    end
    repaired[#repaired + 1] = identity
  end
end
flushHeads(tag, now)
return { 'OK', page[1], repaired }
