-- The second step of a pop: what becomes of each taken record. Whatever can raise is done here, before the record's own
-- writes: decoding, checks, packing the successor. `entry` gets what the enqueueing needs.
--- @include "deadline"
local trouble = {}

local function setAside(tag, entry, reason, now)
  quarantine(tag, entry.change.bucket, entry.identity, entry.text, reason, now)
  entry.change.drop[#entry.change.drop + 1] = entry.identity
  local read, record = pcall(decodeRecord, entry.text)
  if read and entry.queueName then
    countRecord(entry.queueName, record, -1)
  elseif entry.queueName then
    -- What it was counted as, as far as its first byte tells.
    countState(entry.queueName, (string.byte(entry.text) or 0) % 16 == KIND_SCHEDULE and 'schedules' or 'scheduled', -1)
  end
  trouble[#trouble + 1] = 'QUARANTINED ' .. entry.identity .. ' ' .. reason
end

local function unindexEntry(entry)
  entry.change.unindex[#entry.change.unindex + 1] = entry.identity
end

local function repaired(entry)
  trouble[#trouble + 1] = 'REPAIRED ' .. entry.identity
end

-- Without a reason it is not the queue that is at fault: somebody put it on hold.
local function parkEntry(tag, entry, record, reason, now)
  if reason then
    markBroken(tag, entry.queueName, reason, now)
    trouble[#trouble + 1] = 'QUEUE_BROKEN ' .. entry.queueName .. ' ' .. reason
  else
    redis.call('SADD', tag .. ':gate-parked', entry.queueName)
  end
  countRecord(entry.queueName, record, -1)
  record.state = STATE_PARKED
  countRecord(entry.queueName, record, 1)
  redis.call('HSET', entry.change.at .. ':jobs', entry.identity, encodeRecord(record))
  redis.call('ZADD', entry.change.at .. ':parked', entry.fire, entry.identity)
  if record.kind == KIND_SCHEDULE then redis.call('ZREM', entry.change.at .. ':plan', entry.identity) end
  unindexEntry(entry)
end

-- Late beyond its deadline: it ends here, as BullMQ tells of a delayed job that is removed.
local function expireEntry(tag, entry, record, now)
  local change, queue = entry.change, entry.queue
  change.drop[#change.drop + 1] = entry.identity
  countRecord(entry.queueName, record, -1)
  releaseDedup(tag, record, entry.queueName)
  local spent = hasFlag(record.flags, FLAG_GENERATED) and change.short or change.spent
  spent[#spent + 1] = entry.identity
  spent[#spent + 1] = packSpent(now, ENDED_EXPIRED, record.requests)
  writeHistory(tag, now, entry.identity, record.at, 'skipped', 'expired')
  watch.latch(tag, entry.identity, 'skipped', 'expired', now)
  if not queue.broken then
    redis.call('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'removed', 'jobId', entry.runId, 'prev', 'delayed')
  end
  trouble[#trouble + 1] = 'EXPIRED ' .. entry.identity
end

-- Missed: its grace ended before the bucket was served; under skip and latest also once its next one is due.
local function isMissed(record, servedFrom, now)
  if record.cur == 0 or record.curFire > now or hasFlag(record.flags, FLAG_OVERDUE) then return false end
  if record.curFire + record.grace < servedFrom then return true end
  return record.missed ~= MISSED_ALL and record.next > 0 and record.nextFire <= now
end

-- The short way of a plain one-time job: no optional fields, nothing that could raise. False sends it the long way.
local function judgePlainJob(entry, now)
  local text = entry.text
  if #text < 20 then return false end
  local head, state, flags, _, at, p = unpackBytes('>BBBI7I6', text)
  local requests = state % 16
  if head ~= FORMAT * 16 + KIND_JOB or state - requests ~= STATE_SCHEDULED * 16 then return false end
  if (flags ~= 0 and flags ~= FLAG_GENERATED) or at > now or #text < 20 + requests * 8 then return false end
  local nameLength, dataLength, body = unpackBytes('>BI3', text, p + requests * 8)
  local optsAt = body + nameLength + dataLength
  if optsAt > #text + 1 or not optionsAreReadable(substring(text, optsAt)) then return false end
  entry.fire = at
  return true
end

-- What such a one holds; read when it is enqueued, so that a batch keeps little: inc, timestamp, requests, whether its id
-- was generated, name, data, options.
local function readPlainJob(text)
  local _, state, flags, inc, _, p = unpackBytes('>BBBI7I6', text)
  local requests = state % 16 * 8
  local nameLength, dataLength, body = unpackBytes('>BI3', text, p + requests)
  local dataAt = body + nameLength
  local optsAt = dataAt + dataLength
  return inc, math.floor(inc / INC_PER_MS), substring(text, p, p + requests - 1), flags == FLAG_GENERATED, substring(text, body, dataAt - 1),
    substring(text, dataAt, optsAt - 1), substring(text, optsAt)
end

-- Everything else. True when the entry is ready to be enqueued.
local function judgeRecord(tag, entry, now)
  local read, record = pcall(decodeRecord, entry.text)
  if not read then
    if not string.find(tostring(record), 'FORMAT', 1, true) then
      setAside(tag, entry, 'BAD_RECORD ' .. tostring(record), now)
      return false
    end
    -- A newer format is not ours to judge: the index alone is parked, the record stays as it is.
    local at = entry.change.at
    redis.call('ZADD', at .. ':parked', redis.call('ZSCORE', at .. ':due', entry.identity), entry.identity)
    unindexEntry(entry)
    trouble[#trouble + 1] = 'NEWER_FORMAT ' .. entry.identity
    return false
  end
  local dueAt = dueTimeOf(record)
  entry.fire = dueAt
  if record.state ~= STATE_SCHEDULED or dueAt == 0 then
    -- The record is the truth; this index entry has no business here.
    unindexEntry(entry)
    repaired(entry)
    return false
  end
  if dueAt > now then
    redis.call('ZADD', entry.change.at .. ':due', dueAt, entry.identity)
    repaired(entry)
    return false
  end
  if isExpired(record, now) then
    expireEntry(tag, entry, record, now)
    return false
  end
  if not optionsAreReadable(record.opts) then
    setAside(tag, entry, 'BAD_RECORD the options are not a JSON object', now)
    return false
  end
  if entry.queue.broken then
    parkEntry(tag, entry, record, entry.queue.broken, now)
    return false
  end
  if record.kind == KIND_SCHEDULE then
    entry.schedule, entry.id = record, entry.runId
    -- A missed tick is the planner's to judge; runs that wait go on meanwhile.
    if isMissed(record, entry.change.range.servedFrom, now) then setFlag(record, FLAG_OVERDUE, true) end
  else
    entry.record = record
    if hasFlag(record.flags, FLAG_DEDUP) then record.deduplication = deduplicationOf(record) end
  end
  return true
end

local function judgeDue(tag, base, entry, now)
  local colon = string.find(entry.identity, ':', 2, true)
  if not colon then
    setAside(tag, entry, 'BAD_RECORD the identity holds no queue', now)
    return false
  end
  entry.queueName, entry.runId = substring(entry.identity, 1, colon - 1), substring(entry.identity, colon + 1)
  entry.queue = openQueue(base, entry.queueName)
  if not entry.queue.broken then
    -- Only what may be a schedule has the field.
    local judgePlain = entry.successor and readPlainTick or judgePlainJob
    if judgePlain(entry, now) then return true end
  end
  return judgeRecord(tag, entry, now)
end
