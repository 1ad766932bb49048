-- name     read-plan
-- purpose  the schedules of some buckets that need the planner's answer now
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 buckets text(comma list); 4 limit count; 5 bytes count
-- returns  OK now items(list of bucket, identity, record or empty, asked at) | WRONG_LAYOUT
-- cost     O(limit), limit <= 200, bytes <= 1 MB

--- @include "clock"
--- @include "shard"

local tag, layout, limit, byteLimit = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local items, bytes = {}, 0
for bucket in string.gmatch(ARGV[3], '%d+') do
  local left = limit - #items / 4
  if left <= 0 or bytes >= byteLimit then break end
  local at = tag .. ':' .. bucket
  local members = redis.call('ZRANGE', at .. ':plan', '-inf', now, 'BYSCORE', 'LIMIT', 0, left, 'WITHSCORES')
  for i = 1, #members, 2 do
    if bytes >= byteLimit then break end
    local text = redis.call('HGET', at .. ':jobs', members[i]) or ''
    bytes = bytes + #text
    items[#items + 1] = tonumber(bucket)
    items[#items + 1] = members[i]
    items[#items + 1] = text
    items[#items + 1] = tonumber(members[i + 1])
  end
end
return { 'OK', now, items }
