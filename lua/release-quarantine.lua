-- name     release-quarantine
-- purpose  puts a set-aside record back where it fires, or discards it for good
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 verb text(release, discard)
-- returns  OK record now | NOT_FOUND | BAD_RECORD reason | ID_IN_USE | WRONG_LAYOUT
-- cost     O(log N)

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "edit"

local now = clockNow()
local key = tag .. ':' .. bucket .. ':quarantine'
local kept = redis.call('HGET', key, identity)
if not kept then
  local _, reply = openRecord(now)
  return reply or { 'NOT_FOUND' }
end
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local since, length, p = struct.unpack('>I6I2', kept)
local text = string.sub(kept, p + length)
local read, record = pcall(decodeRecord, text)
-- Released before and set aside anew.
if read and answeredBefore(tag, bucket, identity, record.requests, request) then return { 'OK', text, now } end
local requests = rememberRequest(tag, bucket, identity, read and record.requests or '', request, ANSWER_OK, now)
if ARGV[7] == 'discard' then
  redis.call('HDEL', key, identity)
  writeSpent(tag, bucket, identity, now, ENDED_CANCELLED, requests, read and record.kind == KIND_JOB and hasFlag(record.flags, FLAG_GENERATED),
    read and record.kind == KIND_SCHEDULE and record.last or nil)
  redis.call('UNLINK', tag .. ':ledger:' .. identity)
  writeHistory(tag, now, identity, since, 'discarded', string.sub(kept, p, p + length - 1))
  return { 'OK', text, now }
end
if not read then return { 'BAD_RECORD', tostring(record) } end
if not queueName then return { 'BAD_RECORD', 'the identity holds no queue' } end
if redis.call('HEXISTS', tag .. ':' .. bucket .. ':jobs', identity) == 1 then return { 'ID_IN_USE' } end
record.state = STATE_SCHEDULED
record.requests = requests
-- The ticks of that time came while nobody could fire them.
if record.kind == KIND_SCHEDULE and record.cur <= now then leaveToPlanner(record, FLAG_UNSERVED) end
local stored, problem = pcall(storePending, tag, bucket, identity, record, now)
if not stored then return { 'BAD_RECORD', tostring(problem) } end
countRecord(queueName, record, 1)
redis.call('HDEL', key, identity)
-- Those that waited were told that it is lost, and that stands; its end is for those that come.
if string.find(redis.call('HGET', tag .. ':' .. bucket .. ':outcomes', identity) or '', '^lost|%d+|%*|') then
  redis.call('HDEL', tag .. ':' .. bucket .. ':outcomes', identity)
  redis.call('SADD', tag .. ':watched', identity)
  redis.call('HSET', tag .. ':meta', 'watched', '1')
  watch.lookAt(tag, identity, now + 1000)
end
flushCounts(tag)
flushHeads(tag, now)
return { 'OK', text, now }
