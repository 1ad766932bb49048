-- name     claim-run
-- purpose  issues the fencing token of an attempt to the worker that holds the run's lock, and renews that lock
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 queue text; 5 run id text; 6 lock text; 7 lock duration ms; 8 worker json
-- returns  OK token(text) checkpoint(json, empty for none) asked(json, empty for nothing) now | STALE_RUN | WRONG_LAYOUT
-- cost     O(1)

local tag, layout, base, queueName, runId = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local lock, duration, worker = ARGV[6], ARGV[7], ARGV[8]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "held-run"
--- @include "run-order"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
local key = runKey(base, queueName, runId)
if not holdsRun(key, lock) then return { 'STALE_RUN' } end
redis.call('PEXPIRE', key .. ':lock', duration)
local order, asked = orderOf(key)
if asked and not order then redis.call('HDEL', key, ASKED) end
-- One counter a shard, above what any clock gave before: a later attempt has a higher token, whatever TIME does.
local last = tonumber(redis.call('HGET', tag .. ':meta', 'run')) or 0
local token = string.format('%.0f', math.max(last + 1, now * INC_PER_MS))
redis.call('HSET', tag .. ':meta', 'run', token)
redis.call('HSET', key, TOKEN, token, LOCK, lock, WORKER, worker)
return { 'OK', token, redis.call('HGET', key, CHECKPOINT) or '', order and asked or '', now }
