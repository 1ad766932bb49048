-- name     calendar-users
-- purpose  one page of a bucket's schedules that name a calendar; `replan` hands their pending ticks to the planner
-- flags    read-only, deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 bucket number; 4 cursor text; 5 count number; 6 name text; 7 replan bool
-- returns  OK cursor identities(list) | WRONG_LAYOUT
-- cost     O(count), count <= 200

local tag, layout, bucket, name, replan = ARGV[1], ARGV[2], ARGV[3], ARGV[6], ARGV[7] == '1'

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "index"
--- @include "pending"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
-- The stored form; within a text its quotes would be escaped.
local mark = '{"calendar":"' .. name .. '"}'
local page = redis.call('HSCAN', tag .. ':' .. bucket .. ':jobs', ARGV[4], 'COUNT', ARGV[5])
local found, records = {}, {}
for i = 1, #page[2], 2 do
  local identity, text = page[2][i], page[2][i + 1]
  if string.find(text, mark, 1, true) then
    local read, record = pcall(decodeRecord, text)
    if read and record.kind == KIND_SCHEDULE and string.find(record.policies, mark, 1, true) then
      found[#found + 1] = identity
      records[#records + 1] = record
    end
  end
end
if replan and #found > 0 then
  local ver = takeInc(tag, now, #found)
  for i, record in ipairs(records) do
    local ended = record.state == STATE_ENDED
    -- A new version, so that no answer to the old dates is committed.
    record.ver = ver + i - 1
    record.next, record.nextFire = 0, 0
    setFlag(record, FLAG_LAST, false)
    -- It may have ended for want of a free date only.
    if ended then record.state = STATE_SCHEDULED end
    if record.cur > now or (record.cur == 0 and ended) then
      -- Nothing up to now is made up for; what comes after is computed anew, however late the planner gets to it.
      record.cur, record.curFire = 0, 0
      record.last = math.max(record.last, now)
    end
    storePending(tag, bucket, found[i], record, now)
  end
  flushHeads(tag, now)
end
return { 'OK', page[1], found }
