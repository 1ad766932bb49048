-- name     take-over
-- purpose  raises the fences of buckets to the caller's, so that every earlier leader is refused from here on
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 owned bytes
-- returns  OK raised fenced(list of bucket) otherEpoch(list of bucket) now | WRONG_LAYOUT
-- cost     O(buckets), 256 at most

local tag, layout = ARGV[1], ARGV[2]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
readOwned(ARGV[3])
local raised, refused, otherEpoch = 0, {}, {}
for _, range in ipairs(ownedRanges) do
  local fields = {}
  for bucket = range.first, range.last do fields[#fields + 1] = bucket end
  local stored = redis.call('HMGET', tag .. ':fence', unpack(fields))
  local number, _, epoch = fenceParts(range.fence)
  local writes = {}
  for i, bucket in ipairs(fields) do
    local storedNumber, _, storedEpoch = fenceParts(stored[i])
    if stored[i] == range.fence then
      raised = raised + 1
    elseif stored[i] and storedNumber == number and storedEpoch ~= epoch then
      otherEpoch[#otherEpoch + 1] = bucket
    elseif fenceBelow(stored[i], range.fence) then
      writes[#writes + 1] = bucket
      writes[#writes + 1] = range.fence
      raised = raised + 1
    else
      refused[#refused + 1] = bucket
    end
  end
  if #writes > 0 then redis.call('HSET', tag .. ':fence', unpack(writes)) end
end
return { 'OK', raised, refused, otherEpoch, clockNow() }
