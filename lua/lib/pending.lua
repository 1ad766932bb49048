-- Records leave or change their index here; a record is in exactly the index that its state names (I4).
local STATE_NAMES = { [1] = 'scheduled', [2] = 'paused', [3] = 'parked', [7] = 'suspended', [9] = 'ended' }

local function pendingCount(tag, queueName)
  local counts = redis.call('HMGET', tag .. ':queues', queueName .. ':scheduled', queueName .. ':paused', queueName .. ':parked')
  return (tonumber(counts[1]) or 0) + (tonumber(counts[2]) or 0) + (tonumber(counts[3]) or 0)
end

-- One-time jobs are counted by state, schedules by definition; both while they are parked.
local function countRecord(queueName, record, step)
  if record.kind == KIND_SCHEDULE then
    countState(queueName, 'schedules', step)
    if record.state == STATE_PARKED then countState(queueName, 'parked', step) end
  else
    countState(queueName, STATE_NAMES[record.state] or 'scheduled', step)
  end
end

local function unindex(tag, bucket, identity)
  local at = tag .. ':' .. bucket
  redis.call('ZREM', at .. ':due', identity)
  redis.call('ZREM', at .. ':parked', identity)
  redis.call('ZREM', at .. ':plan', identity)
end

-- The deduplication among a record's options, or nil when they hold none that can be used.
local function deduplicationOf(record)
  local read, options = pcall(cjson.decode, record.opts)
  local found = read and type(options) == 'table' and options.de
  return type(found) == 'table' and type(found.id) == 'string' and found or nil
end

-- Removes a pending record with its index, count and deduplication entry.
local function dropPending(tag, bucket, identity, record, queueName)
  unindex(tag, bucket, identity)
  redis.call('HDEL', tag .. ':' .. bucket .. ':jobs', identity)
  countRecord(queueName, record, -1)
  local options = hasFlag(record.flags, FLAG_DEDUP) and deduplicationOf(record)
  if options then
    local entry = redis.call('HGET', tag .. ':dedup:' .. queueName, options.id)
    if entry and struct.unpack('>I7', entry) == record.inc then
      redis.call('HDEL', tag .. ':dedup:' .. queueName, options.id)
    end
  end
end

local function isLeftToPlanner(record)
  return record.kind == KIND_SCHEDULE and hasFlag(record.flags, FLAG_RESUMED)
end

-- The fire time that the record's index holds; 0 when a schedule has no pending tick.
local function fireTimeOf(record)
  if record.kind == KIND_SCHEDULE then return record.curFire end
  return record.at
end

-- Puts a record where its state says, out of all other indexes; raises what does not fit before it writes.
-- A schedule without a known successor goes on plan as well; one that was left to the planner goes there alone.
local function storePending(tag, bucket, identity, record, now)
  local text = encodeRecord(record)
  local at = tag .. ':' .. bucket
  local fireAt = fireTimeOf(record)
  redis.call('HSET', at .. ':jobs', identity, text)
  if record.state == STATE_SCHEDULED and fireAt > 0 and not isLeftToPlanner(record) then
    redis.call('ZADD', at .. ':due', fireAt, identity)
    lowerHead(bucket, fireAt)
  else
    redis.call('ZREM', at .. ':due', identity)
  end
  if record.state == STATE_PARKED then
    redis.call('ZADD', at .. ':parked', fireAt, identity)
  else
    redis.call('ZREM', at .. ':parked', identity)
  end
  if record.kind == KIND_SCHEDULE then
    if record.state == STATE_SCHEDULED and (record.cur == 0 or record.next == 0) then
      redis.call('ZADD', at .. ':plan', 'NX', now, identity)
      lowerHead('p' .. bucket, now)
    else
      redis.call('ZREM', at .. ':plan', identity)
    end
  end
end

-- The pending tick of a schedule came while nobody could fire it: the planner judges it by policy, no pop does.
local function leaveToPlanner(record)
  record.next, record.nextFire = 0, 0
  setFlag(record, FLAG_CATCH_UP, false)
  setFlag(record, FLAG_RESUMED, true)
end

local function markBroken(tag, queueName, reason, now)
  redis.call('HSETNX', tag .. ':queues', queueName .. ':broken', string.format('%.0f', now) .. '|' .. reason)
end
