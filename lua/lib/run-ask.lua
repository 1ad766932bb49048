--- @include "run-order"
-- As src/worker/worker.ts: what the lock of a worker that hears orders begins with.
local HEARS = 'carillon-'

-- Asks the worker that has the run. False when no worker of ours has it: a plain BullMQ worker reads nothing of this.
local function askWorker(tag, queueName, prefix, runId, verb, reason, now)
  local key = prefix .. runId
  -- A worker of ours leaves its lock behind with its name; a later attempt may be another's.
  local lock = redis.call('GET', key .. ':lock')
  if not lock then return false end
  if redis.call('HGET', key, 'carillon:lock') ~= lock and string.sub(lock, 1, #HEARS) ~= HEARS then return false end
  local order = orderOf(key)
  if verb == 'cancel' or not order or order.verb ~= 'cancel' then
    redis.call('HSET', key, 'carillon:asked', realJson.encode({ verb = verb, reason = reason, at = now, started = startsOf(key) }))
  end
  redis.call('PUBLISH', tag .. ':runs', realJson.encode({ queue = queueName, runId = runId, verb = verb }))
  return true
end
