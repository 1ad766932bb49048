-- name     update-run
-- purpose  replaces the name, data, options or priority of a run that BullMQ has and no worker has fetched
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 identity text; 6 request bytes; 7 parts text; 8 name text; 9 data json; 10 options json; 11 priority number; 12 lifo bool; 13 deduplication text; 14 deadline bool; 15 before json
-- returns  OK "" now | ACTIVE | FINISHED state | PENDING | NOT_FOUND | CONFLICT | QUEUE_BROKEN reason | WRONG_LAYOUT
-- cost     O(length of the queue)
-- The arguments are those of update-job; a deadline is for the time before the dispatch and is stored without effect.

--- @include "clock"
--- @include "record"
--- @include "request"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "edit-arguments"
--- @include "run-place"
--- @include "run-open"

local now = clockNow()
local queue = openQueue(base, queueName)
local place, reply = openRun(tag, layout, bucket, identity, queue, jobId, request)
if not place then return reply end
if place == 'active' then return { 'ACTIVE' } end
local key, parts = queue.prefix .. jobId, ARGV[7]
local function has(part) return string.find(parts, part, 1, true) end
if has('b') and (rcall('HGET', key, 'opts') or '') ~= ARGV[15] then return { 'CONFLICT' } end
if has('o') then
  local opts, mark = runPlace.options(queue.prefix, jobId)
  if (rcall('HGET', key, 'deid') or '') ~= ARGV[13] then return { 'CONFLICT' } end
  local text = ARGV[10] == '' and '{"attempts":0}' or ARGV[10]
  if text ~= opts then rcall('HSET', key, 'opts', runPlace.marked(text, mark)) end
end
if has('n') then rcall('HSET', key, 'name', ARGV[8]) end
if has('d') then rcall('HSET', key, 'data', ARGV[9]) end
if has('p') then
  local priority = tonumber(ARGV[11])
  rcall('HSET', key, 'priority', priority)
  if place == 'wait' or place == 'prioritized' then
    runPlace.leave(queue.prefix, jobId, place)
    runPlace.enter(queue, jobId, 0, priority, ARGV[12] == '1', now)
  end
end
runPlace.remember(tag, bucket, identity, request, nil, now)
return { 'OK', '', now }
