-- name     hold-leadership
-- purpose  standalone coordination: takes, keeps or gives back the one leadership of a shard by a heartbeat in Redis
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 holder text; 4 ttl ms; 5 verb text(hold, force, release); 6 epoch text; 7 token number(0 to acquire)
-- returns  HELD token epoch now | ACQUIRED token epoch now | STANDBY holder age now | LOST holder now | RELEASED | WRONG_LAYOUT
-- cost     O(1); O(buckets) when it acquires

local tag, layout, holder, ttl, verb, epoch, token = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], tonumber(ARGV[7])

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "fence-order"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local key = tag .. ':leader'
local leader = redis.call('HMGET', key, 'holder', 'token', 'beat', 'epoch', 'ttl')
local mine = leader[1] == holder and tonumber(leader[2]) == token
-- TIME may step back: an age below zero is no age.
local age = math.max(0, now - (tonumber(leader[3]) or 0))

if verb == 'release' then
  if mine then redis.call('HDEL', key, 'holder', 'beat', 'ttl') end
  return { 'RELEASED' }
end
if token > 0 then
  if not mine then return { 'LOST', leader[1] or '', now } end
  redis.call('HSET', key, 'beat', now)
  return { 'HELD', token, leader[4], now }
end
-- The leader trusts its own TTL, which need not be that of who asks.
if leader[1] and age < (tonumber(leader[5]) or ttl) and verb ~= 'force' then
  -- A beat from before TIME stepped back would keep others out for as long as the step: its age counts from now on.
  if tonumber(leader[3]) > now then redis.call('HSET', key, 'beat', now) end
  return { 'STANDBY', leader[1], age, now }
end

local number, highest = 1, tonumber(leader[2]) or 0
for _, fence in ipairs(redis.call('HVALS', tag .. ':fence')) do
  local fenceNumber, fenceToken = fenceParts(fence)
  number = math.max(number, fenceNumber)
  highest = math.max(highest, fenceToken)
end
local kept = leader[4] or (number .. '|' .. epoch)
redis.call('HSET', key, 'holder', holder, 'token', string.format('%.0f', highest + 1), 'beat', now, 'ttl', ttl, 'epoch', kept)
return { 'ACQUIRED', highest + 1, kept, now }
