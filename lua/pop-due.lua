-- name     pop-due
-- purpose  moves due runs of the owned buckets into their BullMQ queues, each bucket under its fence
-- flags    deny-oom, allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 namespace text; 5 owned bytes; 6 limit count; 7 bytes count; 8 prove bool; 9 latest ms(0 none); 10 planning bool
-- returns  OK now popped nextHead planned fenced lower trouble bytes took(us) taken past(us) working | CLOCK_JUMP now | WRONG_LAYOUT
-- cost     O(n log N) for n <= limit records, limit <= 500, bytes <= 1 MB

local tag, layout, base, namespace = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local owned, limit, byteLimit, prove = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local latest, planning = tonumber(ARGV[9]), ARGV[10] == '1'
local startedAt = redis.call('TIME')

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "dedup-hand-over"
--- @include "our-run"
-- In blocks: a Lua function may have 200 locals, and of these few are called here.
local serve, dueHeads, takeRecords
do
--- @include "serve-schedule"
  serve = serveSchedule
end
--- @include "fence"
--- @include "fence-order"
--- @include "owned"
--- @include "quarantine"
--- @include "plain-tick"
--- @include "judge-due"
do
--- @include "take-due"
  dueHeads, takeRecords = findDue, takeDue
end

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
-- I6: a clock that leapt past what the caller can believe fires nothing.
if latest > 0 and now > latest then return { 'CLOCK_JUMP', now } end
readOwned(owned)
if prove then proveFences(tag) end

local planned, due = dueHeads(tag, now, planning)
local taken, changes, bytes, dueIsLeft = takeRecords(tag, due, now, limit, byteLimit)
local ready, keys = {}, {}
for _, entry in ipairs(taken) do
  if judgeDue(tag, base, entry, now) then
    ready[#ready + 1] = entry
    entry.key = entry.queue.prefix .. entry.runId
    if entry.schedule then entry.key = entry.key .. '@' .. msText(entry.schedule.cur) end
    keys[#keys + 1] = entry.key
  end
end
do
  local function sortByTime(entries)
    for i = 2, #entries do
      if entries[i].fire < entries[i - 1].fire then
        table.sort(entries, function(a, b)
          if a.fire ~= b.fire then return a.fire < b.fire end
          return a.identity < b.identity
        end)
        return
      end
    end
  end
  if #changes > 1 then sortByTime(ready) end
end
local standing = #keys > 0 and redis.call('EXISTS', unpack(keys)) > 0

local spentEntry
do
  local spentHeads = {}
  spentEntry = function(requests)
    local head = spentHeads[#requests]
    if not head then
      head = packSpent(now, ENDED_RUN, requests)
      head = substring(head, 1, #head - #requests)
      spentHeads[#requests] = head
    end
    return head .. requests
  end
end

local popped = 0

local function dispatchJob(entry)
  local change, record = entry.change, entry.record
  local inc, timestamp, requests, generated, name, data, opts
  local priority, lifo, deduplication = 0, false, nil
  if record then
    inc, timestamp, requests, generated = record.inc, record.timestamp, record.requests, hasFlag(record.flags, FLAG_GENERATED)
    name, data, opts, priority, lifo, deduplication = record.name, record.data, record.opts, record.priority, record.lifo, record.deduplication
  else
    inc, timestamp, requests, generated, name, data, opts = readPlainJob(entry.text)
  end
  if standing and redis.call('EXISTS', entry.key) == 1 then
    if not isOurRun(entry.key, runMark(namespace, entry.fire, inc)) then return setAside(tag, entry, 'ID_TAKEN', now) end
  else
    local stored, problem = storeRun(entry.queue, entry.key, entry.runId, runMark(namespace, entry.fire, inc), name, data, opts, timestamp,
      priority, lifo, deduplication)
    if not stored then return setAside(tag, entry, 'BAD_RECORD ' .. tostring(problem), now) end
    if deduplication then pcall(handOverDedup, tag, base, entry.queueName, record, entry.runId, now) end
  end
  popped = popped + 1
  change.drop[#change.drop + 1] = entry.identity
  local spent = generated and change.short or change.spent
  spent[#spent + 1] = entry.identity
  spent[#spent + 1] = spentEntry(requests)
  entry.queue.count = entry.queue.count + 1
end

-- Into the gate of its queue: of the record only the state changes.
function gate.holdJob(entry)
  local record, text, change = entry.record, entry.text, entry.change
  local priority, opts = 0, nil
  if record then
    priority, opts = record.priority, record.opts
  else
    opts = select(7, readPlainJob(text))
  end
  gate.put(tag, entry.queueName, change.bucket, entry.identity, entry.fire, priority, opts, now)
  change.store[#change.store + 1] = entry.identity
  change.store[#change.store + 1] = substring(text, 1, 1) .. string.char(STATE_HELD * 16 + string.byte(text, 2) % 16) .. substring(text, 3)
  unindexEntry(entry)
  entry.queue.count = entry.queue.count + 1
  countState(entry.queueName, 'held', 1)
end

local function storeSchedule(entry, text, dueAt)
  local change = entry.change
  change.store[#change.store + 1] = entry.identity
  change.store[#change.store + 1] = text
  if dueAt > 0 then
    change.index[#change.index + 1] = msText(dueAt)
    change.index[#change.index + 1] = entry.identity
  else
    unindexEntry(entry)
  end
end

local function askPlanner(entry)
  local plan = entry.change.plan
  plan[#plan + 1] = msText(now)
  plan[#plan + 1] = entry.identity
end

local function dispatchSchedule(entry)
  local record, limits = entry.schedule, gate.of(tag, entry.queueName)
  if limits and limits.hold then
    -- Ticks of that time are judged by their policy for missed ones when the queue goes on.
    if dueTimeOf(record) ~= entry.fire then setFlag(record, FLAG_OVERDUE, false) end
    return parkEntry(tag, entry, record, nil, now)
  end
  -- The key that was asked for is that of the pending tick.
  entry.free = not standing
  local started, problem = serve(tag, namespace, entry, record, now, trouble)
  popped = popped + started
  if problem then
    setAside(tag, entry, problem, now)
    return
  end
  storeSchedule(entry, encodeRecord(record), record.state == STATE_SCHEDULED and dueTimeOf(record) or 0)
  if needsPlan(record) then
    askPlanner(entry)
  elseif record.state ~= STATE_SCHEDULED then
    redis.call('ZREM', entry.change.at .. ':plan', entry.identity)
  end
end

local function dispatchTick(entry)
  if gate.of(tag, entry.queueName) or (standing and redis.call('EXISTS', entry.key) == 1) then
    entry.schedule = decodeRecord(entry.text)
    return dispatchSchedule(entry)
  end
  local stored, problem = storeRun(entry.queue, entry.key, entry.runId, runMark(namespace, entry.tick, entry.inc), entry.name, entry.data,
    entry.opts, entry.tick, 0)
  if not stored then return setAside(tag, entry, 'BAD_RECORD ' .. tostring(problem), now) end
  popped = popped + 1
  storeSchedule(entry, entry.successor, entry.successorFire)
  askPlanner(entry)
end

for _, entry in ipairs(ready) do
  if entry.tick then
    dispatchTick(entry)
  elseif entry.schedule then
    dispatchSchedule(entry)
  elseif gate.of(tag, entry.queueName) then
    gate.holdJob(entry)
  else
    dispatchJob(entry)
  end
end
local working = 0
for name, queue in pairs(openQueues) do
  countState(name, 'scheduled', -queue.count)
  if queue.working then working = 1 end
end
flushQueues()

-- Records that left, their spent entries, the heads of the buckets.
for _, change in ipairs(changes) do
  if #change.drop > 0 then
    redis.call('HDEL', change.at .. ':jobs', unpack(change.drop))
    -- All that was read leaves: the head of the index in one short command.
    if #change.drop == change.read then
      redis.call('ZREMRANGEBYRANK', change.at .. ':due', 0, change.read - 1)
    else
      redis.call('ZREM', change.at .. ':due', unpack(change.drop))
    end
  end
  if #change.unindex > 0 then redis.call('ZREM', change.at .. ':due', unpack(change.unindex)) end
  if #change.store > 0 then redis.call('HSET', change.at .. ':jobs', unpack(change.store)) end
  if #change.index > 0 then redis.call('ZADD', change.at .. ':due', unpack(change.index)) end
  if #change.plan > 0 then
    redis.call('ZADD', change.at .. ':plan', 'NX', unpack(change.plan))
    -- No wake: the one who plans it is the caller.
    redis.call('ZADD', tag .. ':heads', 'LT', msText(now), 'p' .. change.bucket)
  end
  if #change.spent > 0 then
    redis.call('HSET', spentKey(tag, change.bucket, spentGeneration(tag, now, false), false), unpack(change.spent))
  end
  if #change.short > 0 then
    redis.call('HSET', spentKey(tag, change.bucket, spentGeneration(tag, now, true), true), unpack(change.short))
  end
  local head = redis.call('ZRANGE', change.at .. ':due', 0, 0, 'WITHSCORES')
  if head[2] then
    if tonumber(head[2]) <= now then dueIsLeft = true end
    redis.call('ZADD', tag .. ':heads', head[2], change.bucket)
  else
    redis.call('ZREM', tag .. ':heads', change.bucket)
  end
end
flushCounts(tag)
do
  local endedAt = redis.call('TIME')
  local took = (endedAt[1] - startedAt[1]) * 1000000 + endedAt[2] - startedAt[2]
  -- How far the call's end is past the whole ms in `now`: who sleeps by it wakes on time.
  local past = startedAt[2] % 1000 + took
  return { 'OK', now, popped, dueIsLeft and now or nextOwnedHead(tag, now), planned, fencedBuckets, lowerBuckets, trouble, bytes, took, #taken, past, working }
end
