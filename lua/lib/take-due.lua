-- The first half of a pop: which owned buckets are due, and a bounded batch of their records.
local HEADS_MAX = 600
-- Records are read in small chunks, so that large payloads end a batch early; the rest stays at the head.
local CHUNK = 25

-- Buckets with schedules for the planner, and the due ones with their ranges, oldest head first. The fence of a due bucket
-- is read when it has its turn: in a herd all are due, and a batch takes one or two.
local function findDue(tag, now)
  local planned, due = {}, {}
  local heads = redis.call('ZRANGE', tag .. ':heads', '-inf', now, 'BYSCORE', 'LIMIT', 0, HEADS_MAX)
  for _, member in ipairs(heads) do
    local planBucket = string.match(member, '^p(%d+)$')
    local bucket = tonumber(planBucket or member)
    local range = ownedRange(bucket)
    if range and not planBucket then
      due[#due + 1] = { bucket = bucket, range = range }
    elseif range and holdsFence(tag, range, bucket) then
      planned[#planned + 1] = bucket
    end
  end
  return planned, due
end

-- What changes in one bucket; written at the end, a command a kind.
local function newChange(tag, entry)
  return { bucket = entry.bucket, at = tag .. ':' .. entry.bucket, range = entry.range, drop = {}, unindex = {}, spent = {}, short = {},
    store = {}, index = {}, plan = {}, read = 0 }
end

-- The fields of a plain job at once: a table that grows field by field is made anew five times over, and these 16 fill
-- one; the judge adds those of the others.
local function newEntry(identity, text, change)
  return { identity = identity, text = text, change = change, queueName = false, runId = false, queue = false, key = false, fire = 0, inc = 0,
    timestamp = 0, requests = '', name = '', data = '', opts = '', priority = 0, generated = false }
end

-- The first records of one bucket that are due; returns the bytes read so far.
local function takeBucket(change, now, limit, byteLimit, taken, bytes)
  local members = redis.call('ZRANGE', change.at .. ':due', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit - #taken)
  for from = 1, #members, CHUNK do
    if bytes >= byteLimit then break end
    local identities = {}
    for i = from, math.min(from + CHUNK - 1, #members) do identities[#identities + 1] = members[i] end
    local texts = redis.call('HMGET', change.at .. ':jobs', unpack(identities))
    change.read = change.read + #identities
    for i, identity in ipairs(identities) do
      local text = texts[i]
      if text then
        bytes = bytes + #text
        taken[#taken + 1] = newEntry(identity, text, change)
      else
        change.unindex[#change.unindex + 1] = identity
      end
    end
  end
  return bytes
end

-- The records, the changes of their buckets, the bytes read, and whether a bucket had no turn.
local function takeDue(tag, due, now, limit, byteLimit)
  local taken, changes, bytes = {}, {}, 0
  for _, entry in ipairs(due) do
    if #taken >= limit or bytes >= byteLimit then return taken, changes, bytes, true end
    if holdsFence(tag, entry.range, entry.bucket) then
      local change = newChange(tag, entry)
      changes[#changes + 1] = change
      bytes = takeBucket(change, now, limit, byteLimit, taken, bytes)
    end
  end
  return taken, changes, bytes, false
end
