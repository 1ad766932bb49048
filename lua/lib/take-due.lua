-- The first half of a pop: which owned buckets are due, and a bounded batch of their records.
local HEADS_MAX = 600
-- Records are read in small chunks, so that large payloads end a batch early; the rest stays at the head.
local CHUNK = 25
-- A head of schedules to plan is `p<bucket>`.
local PLAN_MARK = string.byte('p')

-- Buckets with schedules for the planner, when the caller has time for them, and the members of due heads, oldest first.
-- Those are looked at when they have their turn: in a herd all buckets are due, and a batch takes one or two. No fence is
-- asked for the planner, whose answers are judged by it.
local function findDue(tag, now, planning)
  local planned, due = {}, {}
  local heads = redis.call('ZRANGE', tag .. ':heads', '-inf', now, 'BYSCORE', 'LIMIT', 0, HEADS_MAX)
  for i = 1, #heads do
    local member = heads[i]
    if string.byte(member) ~= PLAN_MARK then
      due[#due + 1] = member
    elseif planning then
      local bucket = tonumber(substring(member, 2))
      if bucket and ownedRange(bucket) then planned[#planned + 1] = bucket end
    end
  end
  return planned, due
end

-- What changes in one bucket; written at the end, a command a kind.
local function newChange(tag, bucket, range)
  return { bucket = bucket, at = tag .. ':' .. bucket, range = range, drop = {}, unindex = {}, spent = {}, short = {},
    store = {}, index = {}, plan = {}, read = 0 }
end

-- The fields of a plain job, or of a plain tick, at once: a table that grows field by field is made anew several times
-- over, and these 8, or 16, fill one; the judge adds those of the others.
local function newEntry(identity, text, change)
  if string.byte(text) == FORMAT * 16 + KIND_SCHEDULE then
    return { identity = identity, text = text, change = change, queueName = false, runId = false, queue = false, key = false, fire = 0, inc = 0,
      name = '', data = '', opts = '', id = '', tick = false, successor = '', successorFire = 0 }
  end
  return { identity = identity, text = text, change = change, queueName = false, runId = false, queue = false, key = false, fire = 0 }
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

-- The records, the changes of their buckets, the bytes read, and whether a bucket of ours had no turn.
local function takeDue(tag, due, now, limit, byteLimit)
  local taken, changes, bytes = {}, {}, 0
  for i = 1, #due do
    local bucket = tonumber(due[i])
    local range = bucket and ownedRange(bucket)
    if range then
      if #taken >= limit or bytes >= byteLimit then return taken, changes, bytes, true end
      if holdsFence(tag, range, bucket) then
        local change = newChange(tag, bucket, range)
        changes[#changes + 1] = change
        bytes = takeBucket(change, now, limit, byteLimit, taken, bytes)
      end
    end
  end
  return taken, changes, bytes, false
end
