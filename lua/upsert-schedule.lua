-- name     upsert-schedule
-- purpose  creates a schedule or replaces its definition, by compare-and-set on the record that the client read
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 definition json; 8 name text; 9 data json; 10 options json; 11 policies json
-- returns  OK record now | CONFLICT | RETRY now last | NOT_FOUND | ID_IN_USE | UNKNOWN_PARENT identity | CYCLE identity | WRONG_LAYOUT | BAD_RECORD
-- cost     O(log N)
-- definition: inc, ver ("" to create), last, asOf, anchor, cur, curFire, next, nextFire, keepTicks, ends,
-- overdueTo, overdueReason, grace, missed, overlap,
-- zone, zoneOffsets (the zone that the ticks were computed in, for who has other tz data),
-- runTimeout, maxOpen, maxConcurrent, keptRows, pauseAfter, priority, lifo.

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "ledger"
--- @include "resize-ledger"
--- @include "edit"
--- @include "follow"
--- @include "follow-refusal"

-- The client computed its ticks from a TIME that it read; too old an answer is computed again.
local STALE = 10000
local now = clockNow()
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local wanted = cjson.decode(ARGV[7])
local text = redis.call('HGET', tag .. ':' .. bucket .. ':jobs', identity)
local record = nil
if text then
  local read
  read, record = pcall(decodeRecord, text)
  if not read then return { 'BAD_RECORD', tostring(record) } end
  if record.kind ~= KIND_SCHEDULE then return { 'ID_IN_USE' } end
  if answeredBefore(tag, bucket, identity, record.requests, request) then return { 'OK', text, now } end
  if string.format('%.0f', record.inc) ~= wanted.inc or string.format('%.0f', record.ver) ~= wanted.ver then return { 'CONFLICT' } end
  -- A tick fired since the client read it: new ticks come after that one, and one less is left of a limit.
  if not wanted.keepTicks and record.last ~= wanted.last then return { 'CONFLICT' } end
elseif wanted.inc ~= '' then
  return { 'CONFLICT' }
end
local _, _, spentRequests, spentLast = readSpent(tag, bucket, identity, false)
-- This very call created it, and somebody deleted it since.
if not record and spentRequests and answeredBefore(tag, bucket, identity, spentRequests, request) then return { 'NOT_FOUND' } end
if math.abs(now - wanted.asOf) > STALE then return { 'RETRY', now, spentLast or 0 } end

local parents = follow.parentsOf(queueName, ARGV[11])
local refused = #parents > 0 and followRefusal(tag, identity, parents)
if refused then return refused end

if not record then
  if wanted.cur > 0 and wanted.cur <= (spentLast or 0) then return { 'RETRY', now, spentLast } end
  local inc = takeInc(tag, now, 1)
  record = { format = FORMAT, kind = KIND_SCHEDULE, state = STATE_SCHEDULED, flags = 0, inc = inc, ver = inc, requests = spentRequests or '',
    last = spentLast or 0, cur = 0, curFire = 0, next = 0, nextFire = 0, check = 0, count = 0, rows = 0, failures = 0, skips = 0,
    open = {}, waiting = {}, keptRows = wanted.keptRows, timestamp = math.floor(inc / INC_PER_MS) }
else
  settleRow(tag, identity, record)
  countRecord(queueName, record, -1)
  record.ver = takeInc(tag, now, 1)
end
if not wanted.keepTicks then
  -- An edit never fires at an old time: overdue ticks of the old definition are recorded, not run.
  if record.cur > 0 and record.cur <= now then
    record.last = math.max(record.cur, wanted.overdueTo)
    writeRow(tag, identity, record, { at = record.last, what = 'skipped', now = now, reason = wanted.overdueReason })
  end
  if wanted.cur > 0 and wanted.cur <= record.last then return { 'RETRY', now, record.last } end
  record.cur, record.curFire, record.next, record.nextFire = wanted.cur, wanted.curFire, wanted.next, wanted.nextFire
  record.at = wanted.anchor
  forgetQuestions(record)
  -- Other times start it again, unless a person paused it.
  if record.state == STATE_SUSPENDED then record.note = nil end
  if record.state == STATE_ENDED or record.state == STATE_SUSPENDED then record.state = STATE_SCHEDULED end
  -- With runs that wait the planner ends it when they have had their turn.
  if wanted.ends and #record.waiting == 0 then record.state = STATE_ENDED end
end
countRecord(queueName, record, 1)
record.grace, record.missed, record.overlap, record.runTimeout = wanted.grace, wanted.missed, wanted.overlap, wanted.runTimeout
record.maxOpen, record.maxConcurrent, record.pauseAfter = wanted.maxOpen, wanted.maxConcurrent, wanted.pauseAfter
if record.keptRows ~= wanted.keptRows then resizeLedger(tag, identity, record, wanted.keptRows) end
record.priority, record.lifo = wanted.priority, wanted.lifo
if record.after then follow.finish(tag, identity, (follow.parentsOf(queueName, record.policies))) end
record.after = #parents > 0
follow.begin(tag, identity, parents)
record.name, record.data, record.opts, record.policies = ARGV[8], ARGV[9], ARGV[10], ARGV[11]
record.requests = rememberRequest(tag, bucket, identity, record.requests, request, ANSWER_OK, now)
storePending(tag, bucket, identity, record, now)
if wanted.zone and not wanted.keepTicks then redis.call('HSETNX', tag .. ':zones', wanted.zone, wanted.zoneOffsets) end
flushCounts(tag)
flushHeads(tag, now)
return { 'OK', encodeRecord(record), now }
