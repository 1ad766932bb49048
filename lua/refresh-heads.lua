-- name     refresh-heads
-- purpose  re-reads the heads of owned buckets, so that far timers come within sight
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 owned bytes
-- returns  OK near(count) | WRONG_LAYOUT
-- cost     O(buckets)

local tag, layout = ARGV[1], ARGV[2]

--- @include "record"
--- @include "shard"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
readOwned(ARGV[3])
local set, gone = {}, {}
local function look(member, key)
  local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if head[2] then
    set[#set + 1] = head[2]
    set[#set + 1] = member
  else
    gone[#gone + 1] = member
  end
end
for _, range in ipairs(ownedRanges) do
  for bucket = range.first, range.last do
    look(bucket, tag .. ':' .. bucket .. ':due')
    look('p' .. bucket, tag .. ':' .. bucket .. ':plan')
  end
end
if #set > 0 then redis.call('ZADD', tag .. ':heads', unpack(set)) end
if #gone > 0 then redis.call('ZREM', tag .. ':heads', unpack(gone)) end
return { 'OK', #set / 2 }
