-- name     beat-worker
-- purpose  a worker says that it lives and how its handlers behave; it hears whether it is to drain
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 worker id text; 4 worker json; 5 effects json(map of job name to effects); 6 forgotten after ms; 7 leaves bool
-- returns  OK drain(json, empty for no) now | WRONG_LAYOUT
-- cost     O(log N), and O(n) for n workers that died

local tag, layout, id, leaves = ARGV[1], ARGV[2], ARGV[3], ARGV[7] == '1'

-- Names of handlers that a queue remembers; with more, only those of the last worker.
local NAMES = 200

--- @include "clock"
--- @include "record"
--- @include "shard"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local beats, workers, drains = tag .. ':beats', tag .. ':workers', tag .. ':drains'

-- An order to drain outlives a silence: a worker that was cut off or frozen comes back to it.
local function forget(worker)
  redis.call('ZREM', beats, worker)
  redis.call('HDEL', workers, worker)
end

for _, dead in ipairs(redis.call('ZRANGE', beats, '-inf', now - ARGV[6], 'BYSCORE', 'LIMIT', 0, 100)) do forget(dead) end
if leaves then
  forget(id)
  redis.call('HDEL', drains, id)
  return { 'OK', '', now }
end
redis.call('ZADD', beats, now, id)
redis.call('HSET', workers, id, ARGV[4])
-- A queue that never had a timer is known from now on: its dead letters are told too.
local queue = cjson.decode(ARGV[4]).queue
redis.call('HSETNX', tag .. ':queues', queue .. ':scheduled', 0)
-- What handlers said last, for the time when none of them lives.
local said = cjson.decode(ARGV[5])
local read, known = pcall(cjson.decode, redis.call('HGET', tag .. ':effects', queue) or '{}')
-- A processor takes jobs of every name: handlers that it follows, and those that follow it, say nothing beside it.
if not read or type(known) ~= 'table' or said['*'] or known['*'] then known = {} end
local names = 0
for name, effects in pairs(said) do known[name] = effects end
for _ in pairs(known) do names = names + 1 end
redis.call('HSET', tag .. ':effects', queue, cjson.encode(names > NAMES and said or known))
return { 'OK', redis.call('HGET', drains, id) or '', now }
