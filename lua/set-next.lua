-- name     set-next
-- purpose  commits the planner's answers, each by compare-and-set and under its bucket's fence
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 owned bytes; 4 answers json
-- returns  OK outcomes(list of word) now fenced lower | WRONG_LAYOUT
-- cost     O(n log N) for n <= 200 answers
-- answer: op, bucket, identity, inc, ver (texts), and by op
--   append:  tail, tick, fireAt            the successor of the last known tick
--   resolve: cur, last, newLast, newCur, newCurFire, newNext, newNextFire, catchUp(list of ticks), skipped(list of {at, what, reason})
--   replan:  cur, last, next, newCur, newCurFire, newNext, newNextFire    the zone's rules changed; in any state but ended
--   defer:   planAt                        asks again later
--   end:     tail                          no tick follows the last known one
--   suspend: reason                        leaves the schedule without a pending tick
--   forget:                                a plan entry without a record
--   quarantine: reason                     the record cannot be read

local tag, layout = ARGV[1], ARGV[2]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "ledger"
--- @include "quarantine"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
readOwned(ARGV[3])

local function tailOf(record)
  if record.next > 0 then return record.next end
  if record.cur > 0 then return record.cur end
  return record.last
end

-- What cannot be stored is asked for again after this (ms).
local BAD_RECORD_REST = 60000

local operations = {}

function operations.append(record, answer)
  if tailOf(record) ~= answer.tail or record.next > 0 then return 'CONFLICT' end
  if answer.tick <= record.last then return 'CONFLICT' end
  if record.cur > 0 then
    record.next, record.nextFire = answer.tick, answer.fireAt
  else
    record.cur, record.curFire = answer.tick, answer.fireAt
  end
end

function operations.resolve(record, answer, identity)
  if record.cur ~= answer.cur or record.last ~= answer.last then return 'CONFLICT' end
  -- A known tick that was not given to the planner is the pop's to fire.
  if record.cur > 0 and not hasFlag(record.flags, FLAG_OVERDUE) then return 'CONFLICT' end
  settleRow(tag, identity, record)
  local waiting = record.waiting
  for _, tick in ipairs(answer.catchUp) do
    waiting[#waiting + 1] = { at = tick, since = now, kind = RUN_CATCH_UP, suffix = '' }
  end
  countRuns(record, #answer.catchUp)
  for _, row in ipairs(answer.skipped) do
    writeRow(tag, identity, record, { at = row.at, what = row.what, now = now, reason = row.reason })
  end
  if #waiting > 0 then record.check = now end
  record.last = answer.newLast
  record.cur, record.curFire = answer.newCur, answer.newCurFire
  record.next, record.nextFire = answer.newNext, answer.newNextFire
  forgetQuestions(record)
  setFlag(record, FLAG_LAST, answer.newNext == 0)
  if answer.suspends then
    record.state = STATE_SUSPENDED
    record.note = answer.suspends
    writeHistory(tag, now, identity, record.last, 'suspended', answer.suspends)
  elseif answer.ends and #waiting == 0 then
    record.state = STATE_ENDED
    writeHistory(tag, now, identity, record.last, 'ended', 'no tick follows')
  end
end

-- Ticks at another instant under the zone's new rules; what waits for the planner otherwise still does.
function operations.replan(record, answer)
  if record.state == STATE_ENDED then return 'CONFLICT' end
  if record.cur ~= answer.cur or record.last ~= answer.last or record.next ~= answer.next then return 'CONFLICT' end
  if answer.newCur > 0 and answer.newCur <= record.last then return 'CONFLICT' end
  record.cur, record.curFire = answer.newCur, answer.newCurFire
  record.next, record.nextFire = answer.newNext, answer.newNextFire
  if answer.newCur ~= answer.cur or answer.newNext ~= answer.next then setFlag(record, FLAG_LAST, false) end
  record.ver = takeInc(tag, now, 1)
end

-- The pending tick is the last one.
operations['end'] = function(record, answer)
  if record.cur ~= answer.tail or record.next > 0 then return 'CONFLICT' end
  setFlag(record, FLAG_LAST, true)
end

function operations.suspend(record, answer, identity)
  record.state = STATE_SUSPENDED
  record.note = string.sub(answer.reason, 1, 500)
  writeHistory(tag, now, identity, record.cur, 'suspended', answer.reason)
end

-- An answer without an operation: a plan entry that nothing needs to be done about.
local function conflict()
  return 'CONFLICT'
end

-- Most answers name a successor alone: the record's place among what is due stays.
local function store(bucket, identity, record, dueAt)
  if record.state ~= STATE_SCHEDULED or dueTimeOf(record) ~= dueAt then return storePending(tag, bucket, identity, record, now) end
  redis.call('HSET', tag .. ':' .. bucket .. ':jobs', identity, encodeRecord(record))
end

local outcomes = {}
local changedBuckets = {}
for _, answer in ipairs(cjson.decode(ARGV[4])) do
  local bucket, identity = answer.bucket, answer.identity
  local at = tag .. ':' .. bucket
  local range = ownedRange(bucket)
  local outcome = 'OK'
  if not range or not holdsFence(tag, range, bucket) then
    outcome = 'FENCED'
  else
    changedBuckets[bucket] = true
    local text = redis.call('HGET', at .. ':jobs', identity)
    local read, record = pcall(decodeRecord, text or '')
    if answer.op == 'defer' then
      redis.call('ZADD', at .. ':plan', 'XX', answer.planAt, identity)
    elseif not text then
      redis.call('ZREM', at .. ':plan', identity)
    elseif not read then
      outcome = 'BAD_RECORD'
      -- A newer format is not ours to judge; it is asked for again.
      if answer.op == 'quarantine' and not string.find(tostring(record), 'FORMAT', 1, true) then
        quarantine(tag, bucket, identity, text, answer.reason, now)
        redis.call('HDEL', at .. ':jobs', identity)
        unindex(tag, bucket, identity)
        countState(string.match(identity, '^[^:]*'), 'schedules', -1)
        outcome = 'OK'
      end
    elseif record.kind ~= KIND_SCHEDULE or (record.state ~= STATE_SCHEDULED and answer.op ~= 'replan') then
      redis.call('ZREM', at .. ':plan', identity)
      outcome = 'CONFLICT'
    elseif string.format('%d', record.inc) ~= answer.inc or string.format('%d', record.ver) ~= answer.ver then
      outcome = 'CONFLICT'
    else
      -- Each in its own try: what raises for one record must not stop the others.
      local dueAt = dueTimeOf(record)
      local fine, refusal = pcall(operations[answer.op] or conflict, record, answer, identity)
      if fine and not refusal then
        settleRow(tag, identity, record)
        fine, refusal = pcall(store, bucket, identity, record, dueAt)
      end
      if not fine then
        outcome = 'BAD_RECORD ' .. tostring(refusal)
        redis.call('ZADD', at .. ':plan', 'XX', now + BAD_RECORD_REST, identity)
      else
        outcome = refusal or 'OK'
        -- What is still asked for after an answer is asked again at once.
        if not needsPlan(record) then
          redis.call('ZREM', at .. ':plan', identity)
        elseif not refusal then
          redis.call('ZADD', at .. ':plan', now, identity)
        end
      end
    end
  end
  outcomes[#outcomes + 1] = outcome
end
flushCounts(tag)
flushHeads(tag, now)
for bucket in pairs(changedBuckets) do
  local head = redis.call('ZRANGE', tag .. ':' .. bucket .. ':plan', 0, 0, 'WITHSCORES')
  if head[2] then
    redis.call('ZADD', tag .. ':heads', head[2], 'p' .. bucket)
  else
    redis.call('ZREM', tag .. ':heads', 'p' .. bucket)
  end
end
return { 'OK', outcomes, now, fencedBuckets, lowerBuckets }
