--- @include "watch"
--- @include "gate"
-- Records leave or change their index here; a record is in exactly the index that its state names (I4).
local STATE_NAMES = { [1] = 'scheduled', [2] = 'paused', [3] = 'parked', [4] = 'waiting', [5] = 'held', [7] = 'suspended', [9] = 'ended' }

local function pendingCount(tag, queueName)
  local counts = redis.call('HMGET', tag .. ':queues', queueName .. ':scheduled', queueName .. ':paused', queueName .. ':parked',
    queueName .. ':waiting', queueName .. ':held')
  return (tonumber(counts[1]) or 0) + (tonumber(counts[2]) or 0) + (tonumber(counts[3]) or 0) + (tonumber(counts[4]) or 0)
    + (tonumber(counts[5]) or 0)
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

-- Gives a record's deduplication id free, while it is this record's.
local function releaseDedup(tag, record, queueName)
  local options = hasFlag(record.flags, FLAG_DEDUP) and deduplicationOf(record)
  if options then
    local entry = redis.call('HGET', tag .. ':dedup:' .. queueName, options.id)
    if entry and struct.unpack('>I7', entry) == record.inc then
      redis.call('HDEL', tag .. ':dedup:' .. queueName, options.id)
    end
  end
end

-- Removes a pending record with its index, count and deduplication entry.
local function dropPending(tag, bucket, identity, record, queueName)
  unindex(tag, bucket, identity)
  redis.call('HDEL', tag .. ':' .. bucket .. ':jobs', identity)
  countRecord(queueName, record, -1)
  releaseDedup(tag, record, queueName)
  if record.state == STATE_HELD then gate.remove(tag, queueName, bucket, identity, record.heldIn or gate.groupOf(record.opts)) end
  if record.state == STATE_WAITING or record.state == STATE_PAUSED then watch.forget(tag, bucket, identity) end
end

-- When the record's entry in due comes up; 0 when it has none. A schedule's is its tick, unless the planner is to judge
-- that, or the next look at runs that wait.
local function dueTimeOf(record)
  if record.kind == KIND_JOB then return record.at end
  local tick = record.curFire
  if hasFlag(record.flags, FLAG_OVERDUE) then tick = 0 end
  if record.check > 0 and (tick == 0 or record.check < tick) then return record.check end
  return tick
end

-- Whether the planner has something to answer: a tick to judge, one to name, or the end of a schedule to declare.
local function needsPlan(record)
  if record.kind ~= KIND_SCHEDULE or record.state ~= STATE_SCHEDULED then return false end
  if hasFlag(record.flags, FLAG_OVERDUE) then return true end
  if hasFlag(record.flags, FLAG_LAST) then return record.cur == 0 and #record.waiting == 0 end
  return record.cur == 0 or record.next == 0
end

-- Puts a record where its state says, out of all other indexes; raises what does not fit before it writes.
local function storePending(tag, bucket, identity, record, now)
  local text = encodeRecord(record)
  local at = tag .. ':' .. bucket
  local dueAt = dueTimeOf(record)
  redis.call('HSET', at .. ':jobs', identity, text)
  if record.state == STATE_SCHEDULED and dueAt > 0 then
    redis.call('ZADD', at .. ':due', dueAt, identity)
    lowerHead(bucket, dueAt)
  else
    redis.call('ZREM', at .. ':due', identity)
  end
  if record.state == STATE_PARKED then
    redis.call('ZADD', at .. ':parked', dueAt, identity)
  else
    redis.call('ZREM', at .. ':parked', identity)
  end
  local queueName = string.match(identity, '^[^:]+')
  local group = record.state == STATE_HELD and gate.groupOf(record.opts)
  -- `heldIn`: where an edit found it.
  if record.heldIn and record.heldIn ~= group then gate.remove(tag, queueName, bucket, identity, record.heldIn) end
  if group then gate.put(tag, queueName, bucket, identity, record.at, record.priority, record.opts, now) end
  if needsPlan(record) then
    redis.call('ZADD', at .. ':plan', 'NX', now, identity)
    lowerHead('p' .. bucket, now)
  elseif record.kind == KIND_SCHEDULE then
    redis.call('ZREM', at .. ':plan', identity)
  end
end

-- The pending tick of a schedule came while nobody could fire it: the planner judges it by policy, no pop does.
-- `why`: FLAG_RESUMED for a pause, FLAG_UNSERVED for a broken queue, which is an outage.
local function leaveToPlanner(record, why)
  setFlag(record, FLAG_OVERDUE, true)
  setFlag(record, why, true)
end

-- The planner's questions about a schedule are answered, or no longer the right ones.
local function forgetQuestions(record)
  for _, flag in ipairs({ FLAG_OVERDUE, FLAG_RESUMED, FLAG_UNSERVED, FLAG_LAST }) do setFlag(record, flag, false) end
end

-- Runs that a person asked of a schedule have their turn, also after its end.
local function lookAtWaiting(record, now)
  record.check = now
  if record.state == STATE_ENDED then record.state = STATE_SCHEDULED end
end

local function markBroken(tag, queueName, reason, now)
  redis.call('HSETNX', tag .. ':queues', queueName .. ':broken', string.format('%.0f', now) .. '|' .. reason)
end
