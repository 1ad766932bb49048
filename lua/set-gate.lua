-- name     set-gate
-- purpose  changes the limits of a queue's gate, or of the one for all queues, and lets what is held be looked at again
-- flags    deny-oom, allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 queue text("" for all queues); 4 change json(null takes a limit away); 5 whole bool(what is not named goes)
-- returns  OK now limits(json, "" for none) | WRONG_LAYOUT
-- cost     O(queues with something held)

local tag, layout, queueName, change, whole = ARGV[1], ARGV[2], ARGV[3], cjson.decode(ARGV[4]), ARGV[5] == '1'

--- @include "clock"
--- @include "record"
--- @include "shard"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local read, limits = pcall(cjson.decode, not whole and redis.call('HGET', tag .. ':gates', queueName) or '{}')
if not read or type(limits) ~= 'table' then limits = {} end
for name, value in pairs(change) do
  if value == cjson.null then limits[name] = nil else limits[name] = value end
end
-- A hold and a pause, each with its note and since when.
for flag, own in pairs({ hold = { 'since', 'note' }, paused = { 'pausedSince', 'pauseNote' } }) do
  if limits[flag] then limits[own[1]] = limits[own[1]] or now else limits[own[1]], limits[own[2]] = nil, nil end
end
local text = next(limits) and cjson.encode(limits) or ''
if text == '' then
  redis.call('HDEL', tag .. ':gates', queueName)
else
  redis.call('HSET', tag .. ':gates', queueName, text)
end
if not limits.max and not limits.groupMax then redis.call('DEL', tag .. ':gate-tokens:' .. queueName) end
local heads = tag .. ':gate-heads'
if queueName ~= '' then
  redis.call('ZADD', heads, 'XX', now, queueName)
else
  for _, held in ipairs(redis.call('ZRANGE', heads, 0, -1)) do redis.call('ZADD', heads, 'XX', now, held) end
end
return { 'OK', now, text }
