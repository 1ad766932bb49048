-- BullMQ's deduplication, judged at submit. While the job waits in our tier the entry stands in T:dedup:<queue>
-- (id -> >I7 inc, I6 expiry or 0, B bucket, job id); the hand-over sets BullMQ's own key, and submit asks both.
--- @include "bullmq/deduplicateJob"
--- @include "dedup-hand-over"

-- The entry that holds, or nil; then also whether one stands that holds no more. Reads only.
local function findDedup(tag, queueName, id, now)
  local entry = redis.call('HGET', tag .. ':dedup:' .. queueName, id)
  if not entry then return nil, false end
  local found = {}
  local p
  found.inc, found.expiry, found.bucket, p = struct.unpack('>I7I6B', entry)
  found.jobId = string.sub(entry, p)
  found.identity = queueName .. ':' .. found.jobId
  local text = redis.call('HGET', tag .. ':' .. found.bucket .. ':jobs', found.identity)
  local read, record = pcall(decodeRecord, text or '')
  if (found.expiry > 0 and found.expiry <= now) or not read or record.inc ~= found.inc then return nil, true end
  found.record = record
  return found
end

local function readDedup(tag, queueName, id, now)
  local found, stale = findDedup(tag, queueName, id, now)
  if stale then redis.call('HDEL', tag .. ':dedup:' .. queueName, id) end
  return found
end

-- Whether the item is a duplicate of a job here or in BullMQ, or takes the place of one here. Reads only.
local function isDuplicate(tag, base, queueName, item, now)
  local options = deduplicationOf(decodeRecord(itemText(item, STATE_SCHEDULED, 0, '')))
  if not options then return false end
  if findDedup(tag, queueName, options.id, now) then return true end
  if openQueue(base, queueName).broken then return false end
  local prefix = base .. queueName .. ':'
  local other = redis.call('GET', prefix .. 'de:' .. options.id)
  if not other or redis.call('EXISTS', prefix .. other) == 0 then return false end
  return not (options.replace and redis.call('ZSCORE', prefix .. 'delayed', other))
end

local function writeDedup(tag, queueName, id, inc, expiry, bucket, jobId)
  redis.call('HSET', tag .. ':dedup:' .. queueName, id, struct.pack('>I7I6B', inc, expiry, bucket) .. jobId)
end

-- When a job that BullMQ holds was due: its run's mark says, else its own timestamp and delay; `default` if neither does.
local function standingAt(key, default)
  if redis.call('TYPE', key).ok ~= 'hash' then return default end
  local values = redis.call('HMGET', key, 'opts', 'timestamp', 'delay')
  local marked = tonumber((string.match(values[1] or '', '"carillon":"%S+ (%d+) ')))
  local timestamp, delay = tonumber(values[2]), tonumber(values[3])
  return marked or (timestamp and timestamp + (delay or 0)) or default
end

local function expiryOf(options, now)
  local ttl = tonumber(options.ttl) or 0
  return ttl > 0 and now + ttl or 0
end

local function tellDeduplicated(base, queueName, jobId, id, deduplicatedJobId)
  local queue = openQueue(base, queueName)
  if queue.broken then return end
  redis.call('XADD', queue.prefix .. 'events', 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'deduplicated',
    'jobId', jobId, 'deduplicationId', id, 'deduplicatedJobId', deduplicatedJobId)
end

-- The id and the time of the job that this one is a duplicate of, or nil when it may be created (its entry is then in place).
local function deduplicate(tag, base, queueName, item, inc, now)
  local options = deduplicationOf(decodeRecord(itemText(item, STATE_SCHEDULED, inc, '')))
  if not options then return nil end
  local id = options.id
  local expiry = expiryOf(options, now)
  local known = readDedup(tag, queueName, id, now)
  if known then
    if options.replace then
      dropPending(tag, known.bucket, known.identity, known.record, queueName)
      writeSpent(tag, known.bucket, known.identity, now, ENDED_REPLACED, known.record.requests,
        hasFlag(known.record.flags, FLAG_GENERATED))
      if not options.extend and expiry > 0 then expiry = known.expiry end
      local queue = openQueue(base, queueName)
      if not queue.broken then
        redis.call('XADD', queue.prefix .. 'events', '*', 'event', 'removed', 'jobId', known.jobId, 'prev', 'delayed')
      end
      tellDeduplicated(base, queueName, item.id, id, known.jobId)
    else
      if options.extend and expiry > 0 then
        writeDedup(tag, queueName, id, known.inc, expiry, known.bucket, known.jobId)
      end
      if options.reschedule and known.record.state == STATE_SCHEDULED then
        known.record.at = item.at
        storePending(tag, known.bucket, known.identity, known.record, now)
      end
      tellDeduplicated(base, queueName, known.jobId, id, item.id)
      return known.jobId, known.record.at
    end
  elseif not openQueue(base, queueName).broken then
    local prefix = base .. queueName .. ':'
    local key = prefix .. 'de:' .. id
    if redis.call('EXISTS', key) == 1 then
      -- The first job has left our tier: BullMQ's own rule decides, and leaves the key naming us when we may go on.
      local queue = openQueue(base, queueName)
      local options_ = { delay = math.max(0, item.at - now) }
      local other = deduplicateJob(options, item.id, prefix .. 'delayed', key, prefix .. 'events', maxEventsOf(queue), prefix,
        '', '', options_, nil, nil, nil, nil, now)
      if other then return other, standingAt(prefix .. other, item.at) end
      local ttl = redis.call('PTTL', key)
      if ttl > 0 then expiry = now + ttl else expiry = 0 end
      redis.call('DEL', key)
    end
  end
  writeDedup(tag, queueName, id, inc, expiry, item.bucket, item.id)
  return nil
end
