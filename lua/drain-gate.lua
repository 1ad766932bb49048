-- name     drain-gate
-- purpose  moves held runs of one queue into BullMQ as its gate allows, under the fence of the queue's bucket
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 namespace text; 5 owned bytes; 6 queue text; 7 bucket number; 8 limit count; 9 bytes count
-- returns  OK now moved next(ms, 0 nothing to wait for) trouble took(us) working | FENCED | WRONG_LAYOUT
-- cost     O(n log N) for n <= limit runs, limit <= 400, and as many tenants

local tag, layout, base, namespace, queueName = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6]
local limit, byteLimit = tonumber(ARGV[8]), tonumber(ARGV[9])
local startedAt = redis.call('TIME')
-- ms between two looks at what has no time of its own: room in the queue, a new tenant, a broken queue.
local LOOK, LOOK_BROKEN = 50, 1000
-- A stream of single runs would cost more than batches of a few (ms between two).
local BATCH = 20
-- Runs enter when the script ends, and tokens grow from its start, or a rate would never be reached. A script that the
-- machine held up lets runs in late: by up to so many ms that is paid out of the burst, beyond out of the rate, so that no
-- second sees more than both.
local ENTRY_LAG = 5
-- So many tenants' tokens are kept beside those that have something held.
local TOKENS_KEPT = 1000

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "quarantine"
-- In blocks: a Lua function may have 200 locals, and of these few are called here.
local handOver, isOurs, isLate, rangeHeld
do
--- @include "dedup-hand-over"
--- @include "our-run"
--- @include "deadline"
  handOver, isOurs, isLate = handOverDedup, isOurRun, isExpired
end
local runPlaces
do
--- @include "run-place"
  runPlaces = runPlace
end
do
--- @include "fence"
--- @include "fence-order"
--- @include "owned"
  -- Whether the caller owns the bucket under a fence that holds.
  function rangeHeld(owned, bucket)
    readOwned(owned)
    local range = ownedRange(bucket)
    return range and holdsFence(tag, range, bucket)
  end
end

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
if not rangeHeld(ARGV[5], tonumber(ARGV[7])) then return { 'FENCED' } end
local now = clockNow()
local ringKey, tokensKey, headsKey = tag .. ':gate-ring:' .. queueName, tag .. ':gate-tokens:' .. queueName, tag .. ':gate-heads'
local limits = gate.of(tag, queueName) or {}
local queue = openQueue(base, queueName)
local moved, trouble = 0, {}

local function finish(next)
  if redis.call('EXISTS', ringKey) == 0 then
    redis.call('ZREM', headsKey, queueName)
    next = 0
  else
    redis.call('ZADD', headsKey, next, queueName)
    if next == gate.NEVER then next = 0 end
  end
  flushCounts(tag)
  local endedAt = redis.call('TIME')
  local took = (endedAt[1] - startedAt[1]) * 1000000 + endedAt[2] - startedAt[2]
  return { 'OK', now, moved, next, trouble, took, queue.working and 1 or 0 }
end

if limits.hold then return finish(gate.NEVER) end
if queue.broken then
  trouble[1] = 'QUEUE_BROKEN ' .. queueName .. ' ' .. queue.broken
  markBroken(tag, queueName, queue.broken, now)
  return finish(now + LOOK_BROKEN)
end

local function fullOf(rate, burst)
  return math.max(1, burst - math.floor(rate * ENTRY_LAG))
end

-- A bucket of tokens: full at first; what passes while a clock goes back counts for nothing.
local function tokensOf(field, rate, burst)
  local kept = redis.call('HGET', tokensKey, field)
  local tokens, at = string.match(kept or '', '^([^|]+)|(%d+)$')
  local full = fullOf(rate, burst)
  if not tokens then return full end
  return math.min(full, math.max(0, tonumber(tokens)) + math.max(0, now - tonumber(at)) * rate)
end

-- ms until the next look at a bucket with so many tokens: once it has one, and before it is full, or some would be lost.
local function restOf(tokens, rate, burst)
  local half = math.floor(fullOf(rate, burst) / rate / 2)
  return math.max(1, math.ceil((1 - tokens) / rate), math.min(BATCH, half))
end

local function keepTokens(field, tokens)
  redis.call('HSET', tokensKey, field, string.format('%.6f|%.0f', tokens, math.max(now, clockNow() - ENTRY_LAG)))
end

local rate = limits.max and limits.max / limits.duration
local tokens = rate and tokensOf('', rate, limits.burst)
local groupRate = limits.groupMax and limits.groupMax / limits.groupDuration
local room = limits.maxWaiting
  and math.max(0, limits.maxWaiting - redis.call('LLEN', queue.prefix .. 'wait') - redis.call('ZCARD', queue.prefix .. 'prioritized'))
local allowed = math.min(limit, tokens and math.floor(tokens) or limit, room or limit)

-- 1. Choose and read, a round of all tenants after the other; the record is the truth, and what contradicts it goes.
local groups, chosen, bytes = {}, {}, 0
local function readGroup(name)
  local group = { name = name, key = tag .. ':gate:' .. queueName .. ':' .. name, from = 0, drop = {}, free = limit, used = 0 }
  if groupRate then
    group.tokens = tokensOf('g' .. name, groupRate, limits.groupBurst)
    group.free = math.floor(group.tokens)
  end
  return group
end

local function endRecord(run, reason)
  redis.call('HDEL', tag .. ':' .. run.bucket .. ':jobs', run.identity)
  countState(queueName, 'held', -1)
  if reason then
    quarantine(tag, run.bucket, run.identity, run.text, reason, now)
    trouble[#trouble + 1] = 'QUARANTINED ' .. run.identity .. ' ' .. reason
  end
end

local function expire(run)
  endRecord(run)
  if runPlaces.setAside(queue.prefix, run.runId, run.record) then runPlaces.drop(queue.prefix, run.runId) end
  releaseDedup(tag, run.record, queueName)
  writeSpent(tag, run.bucket, run.identity, now, ENDED_EXPIRED, run.record.requests, hasFlag(run.record.flags, FLAG_GENERATED))
  writeHistory(tag, now, run.identity, run.record.at, 'skipped', 'expired')
  watch.latch(tag, run.identity, 'skipped', 'expired', now)
  redis.call('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'removed', 'jobId', run.runId, 'prev', 'delayed')
  trouble[#trouble + 1] = 'EXPIRED ' .. run.identity
end

-- True when the run may go into its queue.
local function judge(run)
  run.text = redis.call('HGET', tag .. ':' .. run.bucket .. ':jobs', run.identity)
  if not run.text then return false end
  bytes = bytes + #run.text
  local read, record = pcall(decodeRecord, run.text)
  if not read then
    -- What a newer version wrote is not ours to judge; its own sweep puts it back into the index.
    if string.find(tostring(record), 'FORMAT', 1, true) then
      trouble[#trouble + 1] = 'NEWER_FORMAT ' .. run.identity
    else
      endRecord(run, 'BAD_RECORD ' .. tostring(record))
    end
    return false
  end
  if record.state ~= STATE_HELD then
    trouble[#trouble + 1] = 'REPAIRED ' .. run.identity
    return false
  end
  run.record = record
  if isLate(record, now) then
    expire(run)
    return false
  end
  if not optionsAreReadable(record.opts) then
    endRecord(run, 'BAD_RECORD the options are not a JSON object')
    return false
  end
  if hasFlag(record.flags, FLAG_DEDUP) then record.deduplication = deduplicationOf(record) end
  return true
end

-- Turns had in this batch, in their order.
local turns = {}
local function takeFrom(group, count)
  local members = redis.call('ZRANGE', group.key, group.from, group.from + count - 1)
  group.from = group.from + #members
  for _, member in ipairs(members) do
    group.drop[#group.drop + 1] = member
    local identity = substring(member, 2)
    local run = { bucket = string.byte(member), identity = identity, runId = substring(identity, #queueName + 2), text = false, record = false,
      key = base .. identity }
    if judge(run) then
      chosen[#chosen + 1] = run
      group.used, group.free, allowed = group.used + 1, group.free - 1, allowed - 1
    end
  end
  turns[#turns + 1] = group
  group.turn = #turns
  return #members == count
end

local hungry = {}
for _, name in ipairs(allowed > 0 and redis.call('ZRANGE', ringKey, 0, limit - 1) or {}) do
  groups[#groups + 1] = readGroup(name)
  hungry[#hungry + 1] = groups[#groups]
end
local rounds = #hungry
while #hungry > 0 and allowed > 0 and bytes < byteLimit do
  local part, left = math.max(1, math.floor(allowed / #hungry)), {}
  for _, group in ipairs(hungry) do
    local count = math.min(part, allowed, group.free)
    if count > 0 and bytes < byteLimit and takeFrom(group, count) then left[#left + 1] = group end
    if allowed == 0 then break end
  end
  hungry = left
end

-- 2. Into BullMQ; nobody sees the runs before the flush.
local keys = {}
for i, run in ipairs(chosen) do keys[i] = run.key end
local standing = #keys > 0 and redis.call('EXISTS', unpack(keys)) > 0
local drops, spents, shorts, back = {}, {}, {}, 0
local function addTo(list, bucket, field, value)
  local args = list[bucket]
  if not args then
    args = {}
    list[bucket] = args
  end
  args[#args + 1] = field
  if value then args[#args + 1] = value end
end

for _, run in ipairs(chosen) do
  local record = run.record
  local mark = runMark(namespace, record.at, record.inc)
  local stored, problem = true, nil
  local aside, asideMark = false, nil
  if standing then aside, asideMark = runPlaces.setAside(queue.prefix, run.runId, record) end
  if aside then
    -- It had been in its queue, was paused and resumed: it goes back with its attempts.
    runPlaces.putBack(tag, queue, run.bucket, run.identity, run.runId, record, asideMark, 0, now)
    back = back + 1
  elseif standing and redis.call('EXISTS', run.key) == 1 then
    if not isOurs(run.key, mark) then stored, problem = false, 'ID_TAKEN' end
  else
    stored, problem = storeRecord(queue, run.runId, record, mark)
    if stored and record.deduplication then pcall(handOver, tag, base, queueName, record, run.runId, now) end
    if not stored then problem = 'BAD_RECORD ' .. tostring(problem) end
  end
  if aside then
    moved = moved + 1
  elseif stored then
    moved = moved + 1
    addTo(drops, run.bucket, run.identity)
    addTo(hasFlag(record.flags, FLAG_GENERATED) and shorts or spents, run.bucket, run.identity, packSpent(now, ENDED_RUN, record.requests))
  else
    endRecord(run, problem)
  end
end
flushQueues()

-- 3. The records, the index, the tokens.
countState(queueName, 'held', back - moved)
for bucket, identities in pairs(drops) do redis.call('HDEL', tag .. ':' .. bucket .. ':jobs', unpack(identities)) end
for bucket, args in pairs(spents) do redis.call('HSET', spentKey(tag, bucket, spentGeneration(tag, now, false), false), unpack(args)) end
for bucket, args in pairs(shorts) do redis.call('HSET', spentKey(tag, bucket, spentGeneration(tag, now, true), true), unpack(args)) end
for _, group in ipairs(groups) do
  if #group.drop > 0 then redis.call('ZREM', group.key, unpack(group.drop)) end
  if groupRate and group.used > 0 then keepTokens('g' .. group.name, group.tokens - group.used) end
  if redis.call('EXISTS', group.key) == 0 then
    redis.call('ZREM', ringKey, group.name)
    group.gone = true
  elseif rounds == limit and group.free <= 0 and not group.turn then
    -- Without a token it would stand before those that this batch did not read.
    gate.toBack(tag, queueName, group.name, now)
  end
end
-- Who had a turn goes behind who had none, and by the last one: the rest of a batch that does not divide goes round, too.
if #groups > 1 or rounds == limit then
  for i, group in ipairs(turns) do
    if group.turn == i and not group.gone then gate.toBack(tag, queueName, group.name, now) end
  end
end
if tokens then
  keepTokens('', tokens - moved)
  tokens = tokens - moved
end
if groupRate and redis.call('HLEN', tokensKey) > TOKENS_KEPT + redis.call('ZCARD', ringKey) then
  -- Full again: as good as not kept.
  for _, field in ipairs(redis.call('HRANDFIELD', tokensKey, 100)) do
    if string.byte(field) == 103 and tokensOf(field, groupRate, limits.groupBurst) >= fullOf(groupRate, limits.groupBurst) then redis.call('HDEL', tokensKey, field) end
  end
end

if tokens and tokens < 1 then return finish(now + restOf(tokens, rate, limits.burst)) end
if room and moved >= room then return finish(now + LOOK) end
-- Cut short: what is next, and has its tokens, comes at once.
if moved >= limit or bytes >= byteLimit or not (tokens or groupRate) then return finish(now) end
-- Tenants that were not read may have tokens.
if rounds == limit then return finish(moved > 0 and now or now + BATCH) end
local rest = tokens and not groupRate and BATCH or LOOK
for _, group in ipairs(groups) do
  if groupRate and not group.gone then rest = math.min(rest, restOf(group.tokens - group.used, groupRate, limits.groupBurst)) end
end
return finish(now + rest)
