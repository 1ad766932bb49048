-- name     pop-due
-- purpose  moves due runs of the owned buckets into their BullMQ queues, each bucket under its fence
-- flags    deny-oom, allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 namespace text; 5 owned bytes; 6 limit count; 7 bytes count; 8 prove bool; 9 latest ms(0 none)
-- returns  OK now popped nextHead planned fenced lower trouble bytes | CLOCK_JUMP now | WRONG_LAYOUT
-- cost     O(n log N) for n <= limit records, limit <= 500, bytes <= 1 MB

local tag, layout, base, namespace = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local owned, limit, byteLimit, prove = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local latest = tonumber(ARGV[9])
local HEADS_MAX = 600
local CHUNK = 25

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "dedup-hand-over"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"
--- @include "history"
--- @include "quarantine"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
-- I6: a clock that leapt past what the caller can believe fires nothing.
if latest > 0 and now > latest then return { 'CLOCK_JUMP', now } end
readOwned(owned)
if prove then proveFences(tag) end

-- 1. Which owned buckets are due, oldest head first; which have something for the planner.
local planned = {}
local due = {}
local heads = redis.call('ZRANGE', tag .. ':heads', '-inf', now, 'BYSCORE', 'LIMIT', 0, HEADS_MAX)
for _, member in ipairs(heads) do
  local planBucket = string.match(member, '^p(%d+)$')
  local range = ownedRange(tonumber(planBucket or member))
  if range and holdsFence(tag, range, tonumber(planBucket or member)) then
    if planBucket then planned[#planned + 1] = tonumber(planBucket) else due[#due + 1] = { bucket = tonumber(member), range = range } end
  end
end

-- 2. Take due records, a bounded number over all buckets.
local taken, bytes = {}, 0
local touched = {}
for _, entry in ipairs(due) do
  if #taken >= limit or bytes >= byteLimit then break end
  local bucket = entry.bucket
  local at = tag .. ':' .. bucket
  local members = redis.call('ZRANGE', at .. ':due', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit - #taken, 'WITHSCORES')
  local change = { bucket = bucket, at = at, drop = {}, unindex = {}, spent = {}, short = {} }
  touched[#touched + 1] = change
  if #members > 0 then
    -- Read in small chunks: a batch that grew past its bytes leaves the rest at the head for the next call.
    for from = 1, #members, CHUNK * 2 do
      if bytes >= byteLimit then break end
      local identities = {}
      for i = from, math.min(from + CHUNK * 2 - 1, #members), 2 do identities[#identities + 1] = members[i] end
      local texts = redis.call('HMGET', at .. ':jobs', unpack(identities))
      for i, identity in ipairs(identities) do
        local text = texts[i]
        if text then
          bytes = bytes + #text
          taken[#taken + 1] = { identity = identity, text = text, fire = tonumber(members[from + i * 2 - 1]), change = change, range = entry.range }
        else
          change.unindex[#change.unindex + 1] = identity
        end
      end
    end
  end
end
if #touched > 1 then
  table.sort(taken, function(a, b)
    if a.fire ~= b.fire then return a.fire < b.fire end
    return a.identity < b.identity
  end)
end

-- 3. Judge each record: decode, check and pack whatever can raise, before any write of its own.
local trouble = {}
local keys = {}
local popped = 0

local function park(entry, queueName)
  local record = entry.record
  countRecord(queueName, record, -1)
  record.state = STATE_PARKED
  countRecord(queueName, record, 1)
  local change = entry.change
  redis.call('HSET', change.at .. ':jobs', entry.identity, encodeRecord(record))
  redis.call('ZADD', change.at .. ':parked', entry.fire, entry.identity)
  change.unindex[#change.unindex + 1] = entry.identity
end

local function setAside(entry, reason, queueName)
  quarantine(tag, entry.change.bucket, entry.identity, entry.text, reason, now)
  entry.change.drop[#entry.change.drop + 1] = entry.identity
  if entry.record then countRecord(queueName, entry.record, -1) end
  trouble[#trouble + 1] = 'QUARANTINED ' .. entry.identity .. ' ' .. reason
end

-- The record after its tick: next becomes the pending one, and the planner is asked for the one after it.
local function afterTick(record)
  record.last = record.cur
  record.cur, record.curFire = record.next, record.nextFire
  record.next, record.nextFire = 0, 0
  record.count = record.count + 1
  setFlag(record, FLAG_CATCH_UP, false)
  return encodeRecord(record)
end

local function isMissed(record, servedFrom)
  if hasFlag(record.flags, FLAG_CATCH_UP) then return false end
  if record.curFire + record.grace < servedFrom then return true end
  return record.missed < 2 and record.next > 0 and record.nextFire <= now
end

local function toPlan(entry)
  redis.call('ZADD', entry.change.at .. ':plan', now, entry.identity)
  lowerHead('p' .. entry.change.bucket, now)
end

local ready = {}
for _, entry in ipairs(taken) do
  local read, record = pcall(decodeRecord, entry.text)
  local queueName, id = string.match(entry.identity, '^([^:]+):(.+)$')
  if not read then
    if string.find(tostring(record), 'FORMAT', 1, true) then
      -- A newer format is not ours to judge: the index alone is parked, the record stays as it is.
      redis.call('ZADD', entry.change.at .. ':parked', entry.fire, entry.identity)
      entry.change.unindex[#entry.change.unindex + 1] = entry.identity
      trouble[#trouble + 1] = 'NEWER_FORMAT ' .. entry.identity
    else
      setAside(entry, 'BAD_RECORD ' .. tostring(record), queueName)
    end
  elseif not queueName then
    setAside(entry, 'BAD_RECORD the identity holds no queue', entry.identity)
  else
    entry.record, entry.queueName, entry.id = record, queueName, id
    local fireAt = record.kind == KIND_JOB and record.at or record.curFire
    if record.state ~= STATE_SCHEDULED or (record.kind == KIND_SCHEDULE and record.cur == 0) then
      -- The record is the truth; this index entry has no business here.
      entry.change.unindex[#entry.change.unindex + 1] = entry.identity
      trouble[#trouble + 1] = 'REPAIRED ' .. entry.identity
    elseif fireAt > now then
      redis.call('ZADD', entry.change.at .. ':due', fireAt, entry.identity)
      trouble[#trouble + 1] = 'REPAIRED ' .. entry.identity
    elseif record.kind == KIND_SCHEDULE and isMissed(record, entry.range.servedFrom) then
      entry.change.unindex[#entry.change.unindex + 1] = entry.identity
      toPlan(entry)
    elseif not optionsAreReadable(record.opts) then
      setAside(entry, 'BAD_RECORD the options are not a JSON object', queueName)
    else
      local queue = openQueue(base, queueName)
      if queue.broken then
        markBroken(tag, queueName, queue.broken, now)
        park(entry, queueName)
        trouble[#trouble + 1] = 'QUEUE_BROKEN ' .. queueName .. ' ' .. queue.broken
      else
        local packed, problem = true, nil
        entry.scheduledFor, entry.runId = record.at, id
        if record.kind == KIND_SCHEDULE then
          entry.scheduledFor, entry.runId = record.cur, id .. '@' .. string.format('%.0f', record.cur)
          packed, entry.after = pcall(afterTick, record)
          if not packed then problem = entry.after end
        end
        if packed then
          keys[#keys + 1] = queue.prefix .. entry.runId
          ready[#ready + 1] = entry
        else
          setAside(entry, 'BAD_RECORD ' .. tostring(problem), queueName)
        end
      end
    end
  end
end

-- 4. Enqueue. A hash that stands under the run id is our own run again, or somebody else's job.
local standing = #keys > 0 and redis.call('EXISTS', unpack(keys)) > 0

local function enqueue(entry)
  local record = entry.record
  local mark = runMark(namespace, entry.scheduledFor, record.inc)
  local queue = openQueue(base, entry.queueName)
  if standing and redis.call('EXISTS', queue.prefix .. entry.runId) == 1 then
    local kind = redis.call('TYPE', queue.prefix .. entry.runId).ok
    local opts = kind == 'hash' and redis.call('HGET', queue.prefix .. entry.runId, 'opts') or ''
    if opts and string.find(opts, '"carillon":"' .. mark .. '"', 1, true) then return 'DONE' end
    return 'ID_TAKEN'
  end
  if hasFlag(record.flags, FLAG_DEDUP) then record.deduplication = deduplicationOf(record) end
  local stored, problem = pcall(storeRun, queue, entry.runId, record, mark)
  if stored and record.deduplication then handOverDedup(tag, base, entry.queueName, record, entry.id, now) end
  if not stored then return 'BAD_RECORD ' .. tostring(type(problem) == 'table' and problem.err or problem) end
  return 'DONE'
end

for _, entry in ipairs(ready) do
  local record, change = entry.record, entry.change
  local timestamp = record.timestamp
  if record.kind == KIND_SCHEDULE then record.timestamp = entry.scheduledFor end
  local outcome = enqueue(entry)
  record.timestamp = timestamp
  if outcome == 'DONE' then popped = popped + 1 end
  if record.kind == KIND_JOB then
    if outcome == 'DONE' then
      change.drop[#change.drop + 1] = entry.identity
      local spent = hasFlag(record.flags, FLAG_GENERATED) and change.short or change.spent
      spent[#spent + 1] = entry.identity
      spent[#spent + 1] = packSpent(now, ENDED_RUN, record.requests)
      countState(entry.queueName, 'scheduled', -1)
    else
      setAside(entry, outcome, entry.queueName)
    end
  elseif string.sub(outcome, 1, 10) == 'BAD_RECORD' then
    setAside(entry, outcome, entry.queueName)
  else
    if outcome == 'ID_TAKEN' then
      -- Only this tick is set aside; the schedule goes on to its successor.
      writeHistory(tag, now, entry.identity, entry.scheduledFor, 'quarantined', 'ID_TAKEN')
      trouble[#trouble + 1] = 'ID_TAKEN ' .. entry.queueName .. ':' .. entry.runId
    end
    redis.call('HSET', change.at .. ':jobs', entry.identity, entry.after)
    if record.cur > 0 then
      redis.call('ZADD', change.at .. ':due', record.curFire, entry.identity)
    else
      change.unindex[#change.unindex + 1] = entry.identity
    end
    toPlan(entry)
  end
end
flushQueues()

-- 5. Records that left, their spent entries, the heads of the buckets.
for _, change in ipairs(touched) do
  if #change.drop > 0 then
    redis.call('HDEL', change.at .. ':jobs', unpack(change.drop))
    redis.call('ZREM', change.at .. ':due', unpack(change.drop))
  end
  if #change.unindex > 0 then redis.call('ZREM', change.at .. ':due', unpack(change.unindex)) end
  if #change.spent > 0 then
    redis.call('HSET', spentKey(tag, change.bucket, spentGeneration(tag, now, false), false), unpack(change.spent))
  end
  if #change.short > 0 then
    redis.call('HSET', spentKey(tag, change.bucket, spentGeneration(tag, now, true), true), unpack(change.short))
  end
  local head = redis.call('ZRANGE', change.at .. ':due', 0, 0, 'WITHSCORES')
  if head[2] then
    redis.call('ZADD', tag .. ':heads', head[2], change.bucket)
  else
    redis.call('ZREM', tag .. ':heads', change.bucket)
  end
end
flushCounts(tag)
flushHeads(tag, now)
return { 'OK', now, popped, nextOwnedHead(tag), planned, fencedBuckets, lowerBuckets, trouble, bytes }
