-- name     carry-zone
-- purpose  notes that the ticks of some time zones are being, or were, carried over in one bucket
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 owned bytes; 4 bucket number; 5 what word(begin | done); 6 zones text(comma list)
-- returns  OK list of number | FENCED | WRONG_LAYOUT
-- cost     O(zones), once a zone O(buckets)
-- begin answers for each zone with the counter as it stood when its bucket was begun, whoever begun it: records of a
-- higher ver were carried, or written, since; -1 where nothing is left to do.

local tag, layout, bucket, what = ARGV[1], ARGV[2], tonumber(ARGV[4]), ARGV[5]

--- @include "record"
--- @include "shard"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
readOwned(ARGV[3])
local range = ownedRange(bucket)
if not range or not holdsFence(tag, range, bucket) then return { 'FENCED' } end

local BUCKETS, DONE = 256, '-1'
local moves = tag .. ':zone-moves'

local function field(at, zone)
  return at .. '|' .. zone
end

-- The last bucket ends the move.
local function endWhenDone(zone)
  local fields = {}
  for at = 0, BUCKETS - 1 do fields[#fields + 1] = field(at, zone) end
  for _, state in ipairs(redis.call('HMGET', moves, unpack(fields))) do
    if state ~= DONE then return end
  end
  fields[#fields + 1] = zone
  redis.call('HDEL', moves, unpack(fields))
end

local states = {}
for zone in string.gmatch(ARGV[6], '[^,]+') do
  local state = DONE
  if redis.call('HEXISTS', moves, zone) == 1 then
    if what == 'begin' then
      redis.call('HSETNX', moves, field(bucket, zone), string.format('%.0f', meta.inc))
      state = redis.call('HGET', moves, field(bucket, zone))
    else
      redis.call('HSET', moves, field(bucket, zone), DONE)
      endWhenDone(zone)
    end
  end
  states[#states + 1] = tonumber(state)
end
return { 'OK', states }
