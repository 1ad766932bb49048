-- name     unpark-queue
-- purpose  probes a broken queue and, once it is cured, moves its parked records back to their timers
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 owned bytes; 5 queue text; 6 from bucket; 7 offset count; 8 limit count
-- returns  OK moved nextBucket(256 when done) nextOffset | BROKEN reason | HELD | WRONG_LAYOUT
-- cost     O(buckets + limit log N), limit <= 200, and at most 5,000 parked records looked at

local tag, layout, base, queueName = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local from, offset, limit = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local PAGE = 500
local LOOK_MAX = 5000

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
readOwned(ARGV[4])
local limits = gate.of(tag, queueName)
if limits and limits.hold then return { 'HELD' } end
local queue = openQueue(base, queueName)
if queue.broken then
  -- Since when stays; why may change.
  local known = redis.call('HGET', tag .. ':queues', queueName .. ':broken') or ''
  local since = string.match(known, '^%d+') or string.format('%.0f', now)
  if known ~= since .. '|' .. queue.broken then
    redis.call('HSET', tag .. ':queues', queueName .. ':broken', since .. '|' .. queue.broken)
  end
  return { 'BROKEN', queue.broken }
end

local moved, looked = 0, 0
local wanted = queueName .. ':'

-- True when the record left `parked`.
local function unpark(bucket, identity)
  local at = tag .. ':' .. bucket
  local text = redis.call('HGET', at .. ':jobs', identity)
  if not text then
    redis.call('ZREM', at .. ':parked', identity)
    return true
  end
  local read, record = pcall(decodeRecord, text)
  -- What cannot be read, a newer version's say, waits for who can.
  if not read or record.state ~= STATE_PARKED then return false end
  countRecord(queueName, record, -1)
  record.state = STATE_SCHEDULED
  countRecord(queueName, record, 1)
  local missed = record.kind == KIND_SCHEDULE and record.curFire > 0 and record.curFire + record.grace < now
  if missed then leaveToPlanner(record, FLAG_UNSERVED) end
  storePending(tag, bucket, identity, record, now)
  moved = moved + 1
  return true
end

local bucket = from
while bucket <= 255 and moved < limit and looked < LOOK_MAX do
  local range = ownedRange(bucket)
  local page = {}
  if range and holdsFence(tag, range, bucket) then
    page = redis.call('ZRANGE', tag .. ':' .. bucket .. ':parked', offset, offset + PAGE - 1)
  end
  local cut = false
  for _, identity in ipairs(page) do
    if moved >= limit then
      cut = true
      break
    end
    looked = looked + 1
    -- Records of other queues stay, and are stepped over.
    if string.sub(identity, 1, #wanted) ~= wanted or not unpark(bucket, identity) then offset = offset + 1 end
  end
  if not cut and #page < PAGE then
    bucket = bucket + 1
    offset = 0
  end
end
flushCounts(tag)
flushHeads(tag, now)
-- By the count, not by what this caller led: others may still have some.
if bucket > 255 and (tonumber(redis.call('HGET', tag .. ':queues', queueName .. ':parked')) or 0) <= 0 then
  redis.call('HDEL', tag .. ':queues', queueName .. ':broken')
  redis.call('SREM', tag .. ':gate-parked', queueName)
end
return { 'OK', moved, bucket, offset }
