-- The first half of a pop: which owned buckets are due, and a bounded batch of their records in order of fire time.
local HEADS_MAX = 600
-- Records are read in small chunks, so that large payloads end a batch early; the rest stays at the head.
local CHUNK = 25

-- Buckets with schedules for the planner, and the due ones with their ranges, oldest head first.
local function findDue(tag, now)
  local planned, due = {}, {}
  local heads = redis.call('ZRANGE', tag .. ':heads', '-inf', now, 'BYSCORE', 'LIMIT', 0, HEADS_MAX)
  for _, member in ipairs(heads) do
    local planBucket = string.match(member, '^p(%d+)$')
    local bucket = tonumber(planBucket or member)
    local range = ownedRange(bucket)
    if range and holdsFence(tag, range, bucket) then
      if planBucket then planned[#planned + 1] = bucket else due[#due + 1] = { bucket = bucket, range = range } end
    end
  end
  return planned, due
end

-- What changes in one bucket; written at the end, a command a kind.
local function newChange(tag, entry)
  return { bucket = entry.bucket, at = tag .. ':' .. entry.bucket, range = entry.range, drop = {}, unindex = {}, spent = {}, short = {},
    store = {}, index = {}, plan = {} }
end

-- Every field at once: a table that grows field by field is made anew five times over.
local function newEntry(identity, text, fire, change)
  return { identity = identity, text = text, fire = fire, change = change, queueName = false, runId = false, queue = false, key = false, inc = 0,
    scheduledFor = 0, timestamp = 0, requests = '', name = '', data = '', opts = '', priority = 0, lifo = false, generated = false,
    record = false, schedule = false, id = false, free = false }
end

local function sortByTime(taken)
  for i = 2, #taken do
    if taken[i].fire < taken[i - 1].fire then
      table.sort(taken, function(a, b)
        if a.fire ~= b.fire then return a.fire < b.fire end
        return a.identity < b.identity
      end)
      return
    end
  end
end

-- The records, the changes of their buckets, and the bytes read.
local function takeDue(tag, due, now, limit, byteLimit)
  local taken, changes, bytes = {}, {}, 0
  for _, entry in ipairs(due) do
    if #taken >= limit or bytes >= byteLimit then break end
    local change = newChange(tag, entry)
    changes[#changes + 1] = change
    local members = redis.call('ZRANGE', change.at .. ':due', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit - #taken, 'WITHSCORES')
    for from = 1, #members, CHUNK * 2 do
      if bytes >= byteLimit then break end
      local identities = {}
      for i = from, math.min(from + CHUNK * 2 - 1, #members), 2 do identities[#identities + 1] = members[i] end
      local texts = redis.call('HMGET', change.at .. ':jobs', unpack(identities))
      for i, identity in ipairs(identities) do
        local text = texts[i]
        if text then
          bytes = bytes + #text
          taken[#taken + 1] = newEntry(identity, text, tonumber(members[from + i * 2 - 1]), change)
        else
          change.unindex[#change.unindex + 1] = identity
        end
      end
    end
  end
  if #changes > 1 then sortByTime(taken) end
  return taken, changes, bytes
end
