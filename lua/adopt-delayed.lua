-- name     adopt-delayed
-- purpose  moves jobs out of a BullMQ queue's delayed set into the timers, each in one step
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 items bytes; 6 sources json(a list of [BullMQ id, its options text] an item)
-- returns  OK now answers(list of a word an item) | WRONG_LAYOUT | QUEUE_BROKEN reason
-- cost     O(n log N) for n <= 50 items
-- A word is MOVED; GONE (no longer delayed, or due already: BullMQ runs it); CHANGED (not what the client read);
-- STARTED, FLOW, OWNED (it has been tried, belongs to a flow, to a Job Scheduler); EXISTING (the timers hold the id);
-- BROKEN (a key of it has the wrong type).

local tag, layout, base, queueName, items = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local sources = cjson.decode(ARGV[6])
local MAX_TIME = 253402300799999
-- BullMQ's score of a delayed job is ms * 4096 and a counter.
local SCORE_PER_MS = 4096

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "item"
--- @include "dedup"
--- @include "bullmq/removeJob"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local prefix = base .. queueName .. ':'
local delayedType = redis.call('TYPE', prefix .. 'delayed').ok
if delayedType ~= 'zset' and delayedType ~= 'none' then
  return { 'QUEUE_BROKEN', 'delayed is a ' .. delayedType .. ', BullMQ needs a zset' }
end

-- What BullMQ writes for a job that nobody has touched since it was added; counters count as untouched at 0.
local UNTOUCHED = { name = true, data = true, opts = true, timestamp = true, delay = true, priority = true, deid = true }
local COUNTERS = { atm = true, ats = true, stc = true, progress = true }

-- The word for a job that must stay, or nil; then also its fields. All that may raise is read here, before any write.
local function judge(item, id, options)
  local score = tonumber(redis.call('ZSCORE', prefix .. 'delayed', id) or '')
  if not score then return 'GONE' end
  item.at = math.floor(score / SCORE_PER_MS)
  if item.at <= now or item.at > MAX_TIME then return 'GONE' end
  local key = prefix .. id
  local fields = {}
  local list = redis.call('HGETALL', key)
  for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
  if fields.rjk then return 'OWNED' end
  if (fields.parentKey or '') ~= '' then return 'FLOW' end
  for field, value in pairs(fields) do
    if not UNTOUCHED[field] and not (COUNTERS[field] and value == '0') and field ~= 'parentKey' and field ~= 'parent' then
      return 'STARTED'
    end
  end
  if redis.call('EXISTS', key .. ':dependencies', key .. ':processed', key .. ':failed', key .. ':unsuccessful') > 0 then return 'FLOW' end
  if redis.call('EXISTS', key .. ':logs', key .. ':lock') > 0 then return 'STARTED' end
  local record = decodeRecord(itemText(item, STATE_SCHEDULED, 0, ''))
  if fields.name ~= record.name or fields.data ~= record.data or fields.opts ~= options then return 'CHANGED' end
  if redis.call('HEXISTS', tag .. ':' .. item.bucket .. ':jobs', item.identity) == 1 then return 'EXISTING' end
  if fields.deid then fields.owner = redis.call('GET', prefix .. 'de:' .. fields.deid) end
  return nil, fields
end

-- The deduplication entry goes along, while it is this job's.
local function adoptDedup(item, id, fields, inc)
  if fields.owner ~= id then return end
  local ttl = redis.call('PTTL', prefix .. 'de:' .. fields.deid)
  writeDedup(tag, queueName, fields.deid, inc, ttl > 0 and now + ttl or 0, item.bucket, item.id)
end

local answers = {}
local position = 1
local firstInc = takeInc(tag, now, #sources)
for index, source in ipairs(sources) do
  local item = {}
  local length, restLength
  item.flags, item.recordFlags, item.bucket, item.index, length, item.at, restLength, position = struct.unpack('>BBBI2I2I6I4', items, position)
  item.identity = string.sub(items, position, position + length - 1)
  item.id = string.sub(item.identity, #queueName + 2)
  item.rest = string.sub(items, position + length, position + length + restLength - 1)
  position = position + length + restLength
  local id, inc = source[1], firstInc + index - 1
  local judged, word, fields = pcall(judge, item, id, source[2])
  if not judged then
    word = 'BROKEN'
  elseif not word then
    word = 'MOVED'
    local at = tag .. ':' .. item.bucket
    redis.call('HSET', at .. ':jobs', item.identity, itemText(item, STATE_SCHEDULED, inc, ''))
    redis.call('ZADD', at .. ':due', item.at, item.identity)
    lowerHead(item.bucket, item.at)
    countState(queueName, 'scheduled', 1)
    if fields.deid then adoptDedup(item, id, fields, inc) end
    redis.call('ZREM', prefix .. 'delayed', id)
    removeJob(id, false, prefix, true)
  end
  answers[index] = word
end
flushCounts(tag)
flushHeads(tag, now)
return { 'OK', now, answers }
