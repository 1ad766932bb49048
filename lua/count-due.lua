-- name     count-due
-- purpose  counts a stretch of a bucket's timers by queue and minute, a page a call
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 bucket number; 4 from ms; 5 skip number(of those at from); 6 to ms(not counted itself); 7 count number; 8 queue text("" for all)
-- returns  OK now next(ms, -1 at the end) skip(of those at next) counts(list of queue, minute since 1970, count) | WRONG_LAYOUT
-- cost     O(log N + skip + count), count <= 1000

--- @include "clock"
--- @include "record"
--- @include "shard"

local tag, layout, bucket, from, skip, queueName = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[8]
local count = tonumber(ARGV[7])
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local list = redis.call('ZRANGE', tag .. ':' .. bucket .. ':due', from, '(' .. ARGV[6], 'BYSCORE', 'LIMIT', skip, count, 'WITHSCORES')
local counts, order = {}, {}
local sameScore = 0
for i = 1, #list, 2 do
  local colon = string.find(list[i], ':', 1, true)
  local queue = colon and string.sub(list[i], 1, colon - 1) or ''
  sameScore = list[i + 1] == list[#list] and sameScore + 1 or 0
  if queueName == '' or queue == queueName then
    local minutes = counts[queue]
    if not minutes then
      minutes = {}
      counts[queue] = minutes
      order[#order + 1] = queue
    end
    local minute = math.floor(tonumber(list[i + 1]) / 60000)
    minutes[minute] = (minutes[minute] or 0) + 1
  end
end
local found = {}
for _, queue in ipairs(order) do
  for minute, fired in pairs(counts[queue]) do
    found[#found + 1] = queue
    found[#found + 1] = minute
    found[#found + 1] = fired
  end
end
if #list < count * 2 then return { 'OK', clockNow(), -1, 0, found } end
-- Timers that fire meanwhile leave from the front: to go on by time passes none over.
local last = list[#list]
return { 'OK', clockNow(), string.format('%.0f', tonumber(last)), sameScore + (tonumber(last) == tonumber(from) and skip or 0), found }
