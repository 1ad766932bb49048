-- What a worker's run is told apart by: BullMQ's lock says whose it is now, our fields in its hash say which attempt that
-- is. Fields of ours begin with `carillon:`; they go with the hash.
local TOKEN, LOCK, WORKER, CHECKPOINT, ASKED = 'carillon:token', 'carillon:lock', 'carillon:worker', 'carillon:checkpoint', 'carillon:asked'

local function runKey(base, queueName, runId)
  return base .. queueName .. ':' .. runId
end

-- Whether this worker still has the run: its lock stands. A fencing token that is given must be the last one issued.
local function holdsRun(key, lock, token)
  if redis.call('GET', key .. ':lock') ~= lock then return false end
  return not token or redis.call('HGET', key, TOKEN) == token
end
