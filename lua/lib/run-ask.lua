-- Asks the worker that has the run; a plain BullMQ worker reads nothing of it.
local function askWorker(tag, queueName, prefix, runId, verb, reason, now)
  if redis.call('HEXISTS', prefix .. runId, 'carillon:worker') == 0 then return { 'STOCK_WORKER' } end
  redis.call('HSET', prefix .. runId, 'carillon:asked', realJson.encode({ verb = verb, reason = reason, at = now }))
  redis.call('PUBLISH', tag .. ':runs', realJson.encode({ queue = queueName, runId = runId, verb = verb }))
  return { 'ASKED', '', now }
end
