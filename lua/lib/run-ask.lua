-- Asks the worker that has the run. False when no worker of ours has it: a plain BullMQ worker reads nothing of this.
local function askWorker(tag, queueName, prefix, runId, verb, reason, now)
  -- A worker of ours leaves its lock behind with its name; a later attempt may be another's.
  local lock = redis.call('GET', prefix .. runId .. ':lock')
  if not lock or redis.call('HGET', prefix .. runId, 'carillon:lock') ~= lock then return false end
  redis.call('HSET', prefix .. runId, 'carillon:asked', realJson.encode({ verb = verb, reason = reason, at = now,
    started = tonumber(redis.call('HGET', prefix .. runId, 'ats')) or 0 }))
  redis.call('PUBLISH', tag .. ':runs', realJson.encode({ queue = queueName, runId = runId, verb = verb }))
  return true
end
