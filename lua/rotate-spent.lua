-- name     rotate-spent
-- purpose  drops the older half of the duplicate windows whole, and old history
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 window ms; 4 short window ms; 5 history ms
-- returns  OK rotated(count) | WRONG_LAYOUT
-- cost     O(buckets) unlinks

local tag, layout = ARGV[1], ARGV[2]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local rotated = 0
for field, window in pairs({ spent = tonumber(ARGV[3]), spentShort = tonumber(ARGV[4]) }) do
  local since = tonumber(redis.call('HGET', tag .. ':meta', field .. 'At') or now)
  if meta[field] and now - since >= window then
    local generation = tonumber(meta[field])
    for bucket = 0, 255 do
      redis.call('UNLINK', spentKey(tag, bucket, generation - 1, field == 'spentShort'))
    end
    redis.call('HSET', tag .. ':meta', field, generation + 1, field .. 'At', string.format('%.0f', now))
    rotated = rotated + 1
  end
end
redis.call('XTRIM', tag .. ':history', 'MINID', '~', string.format('%.0f', now - tonumber(ARGV[5])))
return { 'OK', rotated }
