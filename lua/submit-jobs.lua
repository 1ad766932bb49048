-- name     submit-jobs
-- purpose  accepts one-time jobs of one queue: due later into timers, due now into the BullMQ queue itself
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 namespace text; 5 queue text; 6 call bytes; 7 window ms; 8 maxPending count; 9 items bytes; 10 afters json("" for none)
-- returns  OK now answers(a byte an item, 0 ID_IN_USE, 7 other parents) others(list of index, id, scheduledFor) | WRONG_LAYOUT | QUOTA pending | OUT_OF_RANGE item | PAST_DEADLINE item | UNKNOWN_PARENT identity | PARENT_IS_SCHEDULE identity | PARENT_BUSY identity
-- cost     O(n log N) for n <= 250 items, 256 KB

local tag, layout, base, namespace, queueName = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local call, window, maxPending, items = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
-- What jobs wait for, by their place in the call (a text, from 1); see lib/watch.lua. Most calls have none.
local afters = ARGV[10] ~= '' and cjson.decode(ARGV[10])
local MAX_TIME = 253402300799999
-- Item flags; an item is >B flags, B record flags, B bucket, I2 index in its bulk, I2 identity length, I6 at or
-- delay, I4 rest length, identity, rest.
local ITEM_DELAY, ITEM_CHOSEN, ITEM_REPLACE = 1, 2, 4

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "item"
--- @include "deadline"
-- In a block: a Lua function may have 200 locals, and of these few are called here.
local isDuplicateItem, deduplicateItem, handOver, standsAt
do
--- @include "dedup"
  isDuplicateItem, deduplicateItem, handOver, standsAt = isDuplicate, deduplicate, handOverDedup, standingAt
end
local refusal, joinParents, differ
do
--- @include "history"
--- @include "parents"
--- @include "join-parents"
end

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local limits = gate.of(tag, queueName)

-- 1. Read every item and whatever can refuse the call, before any write. A column a field: most items need no table.
local flagsOf, recordFlagsOf, bucketOf, indexOf, timeOf, identityOf, restAt, restEnd = {}, {}, {}, {}, {}, {}, {}, {}
local chosenKeys, count, later, position = {}, 0, 0, 1

local function itemOf(i)
  return { flags = flagsOf[i], recordFlags = recordFlagsOf[i], bucket = bucketOf[i], index = indexOf[i], at = timeOf[i],
    chosen = hasFlag(flagsOf[i], ITEM_CHOSEN), identity = identityOf[i], id = substring(identityOf[i], #queueName + 2),
    rest = substring(items, restAt[i], restEnd[i]) }
end

while position <= #items do
  local flags, recordFlags, bucket, index, length, at, restLength, start = unpackBytes('>BBBI2I2I6I4', items, position)
  position = start + length + restLength
  if flags % 2 == ITEM_DELAY then at = now + at end
  if at > MAX_TIME then return { 'OUT_OF_RANGE', tostring(count) } end
  local identity = substring(items, start, start + length - 1)
  if flags % 4 >= ITEM_CHOSEN then chosenKeys[#chosenKeys + 1] = base .. identity end
  if at > now or afters or limits then later = later + 1 end
  count = count + 1
  flagsOf[count], recordFlagsOf[count], bucketOf[count], indexOf[count], timeOf[count] = flags, recordFlags, bucket, index, at
  identityOf[count], restAt[count], restEnd[count] = identity, start + length, position - 1
  if recordFlags >= FLAG_DEADLINE and isPastDeadline(decodeRecord(itemText(itemOf(count), STATE_SCHEDULED, 0, ''))) then
    return { 'PAST_DEADLINE', tostring(count - 1) }
  end
end
-- What waits already, and what a repeat of this call would only be answered, takes no new place.
local function takesNoPlace(item)
  if redis.call('HEXISTS', tag .. ':' .. item.bucket .. ':jobs', item.identity) == 1 then return true end
  if hasFlag(item.recordFlags, FLAG_DEDUP) and isDuplicateItem(tag, base, queueName, item, now) then return true end
  local _, _, ended = readSpent(tag, item.bucket, item.identity, not item.chosen)
  return ended and (not item.chosen or answeredBefore(tag, item.bucket, item.identity, ended, call .. packBytes('>I2', item.index)))
end
if maxPending > 0 then
  local pending = pendingCount(tag, queueName)
  for i = 1, count do
    if pending + later <= maxPending then break end
    if (timeOf[i] > now or afters or limits) and takesNoPlace(itemOf(i)) then later = later - 1 end
  end
  if pending + later > maxPending then return { 'QUOTA', tostring(pending) } end
end
if afters then
  for place, entry in pairs(afters) do
    local item = itemOf(tonumber(place))
    -- A repeat is answered, whatever became of its parents since.
    local refused = not takesNoPlace(item) and refusal(entry)
    if refused then return refused end
  end
end
local someStand = #chosenKeys > 0 and redis.call('EXISTS', unpack(chosenKeys)) > 0
local firstInc = takeInc(tag, now, count)

-- Into the timers; false when the identity is pending already.
local function createTimer(item, inc, requests)
  local at = tag .. ':' .. item.bucket
  if redis.call('HSETNX', at .. ':jobs', item.identity, itemText(item, STATE_SCHEDULED, inc, requests)) == 0 then return false end
  redis.call('ZADD', at .. ':due', item.at, item.identity)
  lowerHead(item.bucket, item.at)
  countState(queueName, 'scheduled', 1)
  return true
end

local ranNow = false
-- Into the BullMQ queue at once, or into its gate. What BullMQ's Lua chokes on becomes a timer, for the pop to set aside with its reason,
-- and so does what comes after its deadline, for the pop to end; a broken queue gets nothing, its job is parked like any other (I1).
local function createDue(item, inc, requests)
  if limits then
    local record = decodeRecord(itemText(item, STATE_HELD, inc, requests))
    redis.call('HSET', tag .. ':' .. item.bucket .. ':jobs', item.identity, itemText(item, STATE_HELD, inc, requests))
    gate.put(tag, queueName, item.bucket, item.identity, item.at, record.priority, record.opts, now)
    countState(queueName, 'held', 1)
    return
  end
  local queue = openQueue(base, queueName)
  if not queue.broken then
    local record = decodeRecord(itemText(item, STATE_SCHEDULED, inc, requests))
    if hasFlag(record.flags, FLAG_DEDUP) then record.deduplication = deduplicationOf(record) end
    if isExpired(record, now) or not storeRecord(queue, item.id, record, runMark(namespace, item.at, inc)) then
      createTimer(item, inc, requests)
      return
    end
    if record.deduplication then handOver(tag, base, queueName, record, item.id, now) end
    writeSpent(tag, item.bucket, item.identity, now, ENDED_RUN, requests, not item.chosen)
    ranNow = true
    return
  end
  redis.call('HSET', tag .. ':' .. item.bucket .. ':jobs', item.identity, itemText(item, STATE_PARKED, inc, requests))
  redis.call('ZADD', tag .. ':' .. item.bucket .. ':parked', item.at, item.identity)
  countState(queueName, 'parked', 1)
  markBroken(tag, queueName, queue.broken, now)
end

-- As BullMQ tells it, also while the job that stands is still in the timers.
local function tellDuplicated(jobId)
  local queue = openQueue(base, queueName)
  if queue.broken then return end
  redis.call('XADD', queue.prefix .. 'events', 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'duplicated', 'jobId', jobId)
end

-- The answer to an identity that is known already, or nil when the job may be created; then also the requests of the
-- earlier job of that id, which the new record keeps: a late repeat of one of them must not touch it.
local function knownAnswer(item, request, entry)
  local earlier = ''
  local pending = redis.call('HGET', tag .. ':' .. item.bucket .. ':jobs', item.identity)
  if pending then
    local read, record = pcall(decodeRecord, pending)
    if not read then return ANSWER_EXISTING, item.at end
    if record.kind == KIND_SCHEDULE then return ANSWER_ID_IN_USE, item.at end
    if not item.chosen then return ANSWER_CREATED, record.at end
    local before = answeredBefore(tag, item.bucket, item.identity, record.requests, request)
    if before then return before, record.at end
    if hasFlag(item.flags, ITEM_REPLACE) then
      dropPending(tag, item.bucket, item.identity, record, queueName)
      return nil, nil, ANSWER_REPLACED, record.requests
    end
    if entry and differ(item, entry) then return ANSWER_OTHER_PARENTS, record.at end
    record.requests = rememberRequest(tag, item.bucket, item.identity, record.requests, request, ANSWER_EXISTING, now)
    redis.call('HSET', tag .. ':' .. item.bucket .. ':jobs', item.identity, encodeRecord(record))
    tellDuplicated(item.id)
    return ANSWER_EXISTING, record.at
  end
  local endedAt, how, ended = readSpent(tag, item.bucket, item.identity, not item.chosen)
  if endedAt then
    -- A delay counted from the first call; its job ran since.
    local at = item.at
    if how == ENDED_RUN and hasFlag(item.flags, ITEM_DELAY) then at = math.min(at, endedAt) end
    if not item.chosen then return ANSWER_CREATED, at end
    local before = answeredBefore(tag, item.bucket, item.identity, ended, request)
    if before then return before, at end
    if how == ENDED_RUN and now - endedAt < window then
      return ANSWER_FIRED, endedAt
    end
    earlier = ended
  end
  if item.chosen and redis.call('EXISTS', base .. item.identity) == 1 then
    tellDuplicated(item.id)
    return ANSWER_EXISTING, standsAt(base .. item.identity, item.at)
  end
  return nil, nil, nil, earlier
end

-- 2. Judge and store; each stands alone. Told besides its answer is only what differs from what was asked.
local answers, others = {}, {}
local CREATED = string.char(ANSWER_CREATED)
local function judge(index)
  local item = itemOf(index)
  local request = call .. packBytes('>I2', item.index)
  local requests = item.chosen and (request .. string.char(ANSWER_CREATED)) or ''
  local inc = firstInc + index - 1
  local deduplicated = hasFlag(item.recordFlags, FLAG_DEDUP)
  local id = item.id
  local entry = afters and afters[tostring(index)]
  local answer, knownAt, created, earlier = knownAnswer(item, request, entry)
  local at = knownAt or item.at
  if not answer and deduplicated then
    local other, otherAt = deduplicateItem(tag, base, queueName, item, inc, now)
    if other then answer, id, at = ANSWER_EXISTING, other, otherAt end
  end
  if not answer then
    answer = created or ANSWER_CREATED
    requests = item.chosen and rememberRequest(tag, item.bucket, item.identity, earlier, request, answer, now) or ''
    if not entry or joinParents(item, inc, requests, entry, now) then
      if item.at > now then createTimer(item, inc, requests) else createDue(item, inc, requests) end
    end
  end
  answers[index] = string.char(answer)
  if id ~= item.id or at ~= item.at then
    others[#others + 1] = index - 1
    others[#others + 1] = id
    others[#others + 1] = at
  end
end

-- Most jobs are new, due later and of one kind. Those of one bucket that follow each other (a client sorts a bulk by
-- bucket) are stored together, with few commands. False when one of them may be known already: judged one by one then.
local function mayBeNew(i)
  if timeOf[i] <= now or someStand or afters or recordFlagsOf[i] % (2 * FLAG_DEDUP) >= FLAG_DEDUP then return false end
  if flagsOf[i] % 4 >= ITEM_CHOSEN then return not meta.spent end
  return not meta.spentShort
end

local HEAD, STATE = FORMAT * 16 + KIND_JOB, STATE_SCHEDULED * 16
local function newText(i)
  local rest, inc = substring(items, restAt[i], restEnd[i]), firstInc + i - 1
  if flagsOf[i] % 4 < ITEM_CHOSEN then return packBytes('>BBBI7I6', HEAD, STATE, recordFlagsOf[i], inc, timeOf[i]) .. rest end
  return packBytes('>BBBI7I6c5I2B', HEAD, STATE + 1, recordFlagsOf[i], inc, timeOf[i], call, indexOf[i], ANSWER_CREATED) .. rest
end

local stored = 0
-- Arguments of one group after the other: filled anew, never made anew.
local due, texts = {}, {}
local function storeNew(first, last)
  local bucket, head, n = bucketOf[first], timeOf[first], 0
  local jobs = tag .. ':' .. bucket .. ':jobs'
  for i = first, last do
    local identity, at = identityOf[i], timeOf[i]
    -- A group is small, as a rule: comparing costs less than a table.
    for other = first, i - 1 do
      if identityOf[other] == identity then return false end
    end
    due[n + 1], due[n + 2] = msText(at), identity
    texts[n + 1], texts[n + 2] = identity, newText(i)
    n = n + 2
    if at < head then head = at end
  end
  if first == last then
    if redis.call('HSETNX', jobs, texts[1], texts[2]) == 0 then return false end
  else
    for _, found in ipairs(redis.call('HMGET', jobs, unpack(identityOf, first, last))) do
      if found then return false end
    end
    redis.call('HSET', jobs, unpack(texts, 1, n))
  end
  redis.call('ZADD', tag .. ':' .. bucket .. ':due', unpack(due, 1, n))
  lowerHead(bucket, head)
  stored = stored + last - first + 1
  for i = first, last do answers[i] = CREATED end
  return true
end

local judged, problem = pcall(function()
  local first = 1
  while first <= count do
    local bucket, last = bucketOf[first], first
    local new = mayBeNew(first)
    while last < count and bucketOf[last + 1] == bucket do
      last = last + 1
      new = new and mayBeNew(last)
    end
    if not new or not storeNew(first, last) then
      for i = first, last do judge(i) end
    end
    first = last + 1
  end
end)
countState(queueName, 'scheduled', stored)
-- What was stored before an item raised is made visible all the same: its repeat would find it done.
flushQueues()
flushCounts(tag)
-- What is due at once leaves no count, and its queue is to be known all the same: to be listed, paused with everything, and told of its dead.
if ranNow then redis.call('HSETNX', tag .. ':queues', queueName .. ':scheduled', 0) end
flushHeads(tag, now)
if not judged then error(problem) end
return { 'OK', now, table.concat(answers), others }
