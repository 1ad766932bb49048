-- name     list-due
-- purpose  one page of a bucket's timers in order of fire time, either way, filtered by queue
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 offset number; 6 count number; 7 queue text; 8 latestFirst bool; 9 jobsOnly bool
-- returns  OK nextOffset(or -1) timers(list of identity, fireAt) | WRONG_LAYOUT
-- cost     O(log N + count), count <= 1000

--- @include "record"
--- @include "shard"

local tag, layout, bucket, queueName = ARGV[1], ARGV[2], ARGV[4], ARGV[7]
local offset, count, latestFirst, jobsOnly = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[8] == '1', ARGV[9] == '1'
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local at = tag .. ':' .. bucket
local list = redis.call(latestFirst and 'ZREVRANGE' or 'ZRANGE', at .. ':due', offset, offset + count - 1, 'WITHSCORES')
local found = {}
local wanted = queueName .. ':'

-- Schedules share the index; their kind stands in the record's first byte.
local function isJob(identity)
  local head = string.byte(redis.call('HGET', at .. ':jobs', identity) or '', 1)
  return head and head % 16 == KIND_JOB
end

for i = 1, #list, 2 do
  if (queueName == '' or string.sub(list[i], 1, #wanted) == wanted) and (not jobsOnly or isJob(list[i])) then
    found[#found + 1] = list[i]
    found[#found + 1] = list[i + 1]
  end
end
return { 'OK', #list < count * 2 and -1 or offset + count, found }
