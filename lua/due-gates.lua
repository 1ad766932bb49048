-- name     due-gates
-- purpose  names the queues whose gates are to be drained, and those whose parked schedules go on
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 limit count
-- returns  OK now due(list of queue) next(ms, 0 none) released(list of queue) gates(count) | WRONG_LAYOUT
-- cost     O(log N + limit)

local tag, layout, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "gate"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local due = redis.call('ZRANGE', tag .. ':gate-heads', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
local after = redis.call('ZRANGE', tag .. ':gate-heads', '(' .. now, '(' .. gate.NEVER, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local released = {}
for _, queueName in ipairs(redis.call('SRANDMEMBER', tag .. ':gate-parked', limit)) do
  local limits = gate.of(tag, queueName)
  if not limits or not limits.hold then released[#released + 1] = queueName end
end
return { 'OK', now, due, after[2] and math.floor(tonumber(after[2])) or 0, released, redis.call('HLEN', tag .. ':gates') }
