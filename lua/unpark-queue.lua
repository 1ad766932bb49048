-- name     unpark-queue
-- purpose  probes a broken queue and, once it is cured, moves its parked records back to their timers
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 owned bytes; 5 queue text; 6 from bucket; 7 limit count
-- returns  OK moved nextBucket(256 when done) | BROKEN reason | WRONG_LAYOUT
-- cost     O(buckets + limit log N), limit <= 200

local tag, layout, base, queueName = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local from, limit = tonumber(ARGV[6]), tonumber(ARGV[7])
-- A bucket's parked set holds several queues; this much of it is looked at in one call.
local SCAN = 500

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
local queue = openQueue(base, queueName)
if queue.broken then
  redis.call('HSET', tag .. ':queues', queueName .. ':broken', string.format('%.0f', now) .. '|' .. queue.broken)
  return { 'BROKEN', queue.broken }
end

local moved, bucket = 0, from
local wanted = queueName .. ':'
while bucket <= 255 and moved < limit do
  local range = ownedRange(bucket)
  local waits = false
  if range and holdsFence(tag, range, bucket) then
    local at = tag .. ':' .. bucket
    local members = redis.call('ZRANGE', at .. ':parked', 0, SCAN - 1)
    for _, identity in ipairs(members) do
      if string.sub(identity, 1, #wanted) == wanted then
        if moved >= limit then
          waits = true
          break
        end
        local text = redis.call('HGET', at .. ':jobs', identity)
        local read, record = pcall(decodeRecord, text or '')
        if not text then
          redis.call('ZREM', at .. ':parked', identity)
        elseif read and record.state == STATE_PARKED then
          countRecord(queueName, record, -1)
          record.state = STATE_SCHEDULED
          countRecord(queueName, record, 1)
          storePending(tag, bucket, identity, record, now)
          moved = moved + 1
        end
      end
    end
  end
  if waits then break end
  bucket = bucket + 1
end
flushCounts(tag)
flushHeads(tag, now)
if bucket > 255 then redis.call('HDEL', tag .. ':queues', queueName .. ':broken') end
return { 'OK', moved, bucket }
