-- What a worker's run is told apart by: BullMQ's lock says whose it is now, our fields in its hash say which attempt that
-- is. Fields of ours begin with `carillon:`; they go with the hash.
local TOKEN, LOCK, WORKER, CHECKPOINT, ASKED, PAUSED =
  'carillon:token', 'carillon:lock', 'carillon:worker', 'carillon:checkpoint', 'carillon:asked', 'carillon:paused'

local function runKey(base, queueName, runId)
  return base .. queueName .. ':' .. runId
end

-- Whether this worker still has the run: its lock stands. A fencing token that is given must be the last one issued.
local function holdsRun(key, lock, token)
  if redis.call('GET', key .. ':lock') ~= lock then return false end
  return not token or redis.call('HGET', key, TOKEN) == token
end

-- A run that a person paused while BullMQ had it keeps its hash, with attempts and checkpoint, and stands in no list.
local function markPaused(tag, key, queueName, runId, now, note)
  redis.call('HSET', key, PAUSED, cjson.encode({ since = now, note = note }))
  redis.call('HDEL', key, ASKED)
  redis.call('ZADD', tag .. ':paused', string.format('%.0f', now), queueName .. ':' .. runId)
end

local function unmarkPaused(tag, key, queueName, runId)
  redis.call('HDEL', key, PAUSED)
  redis.call('ZREM', tag .. ':paused', queueName .. ':' .. runId)
end

-- The scheduled time among a run's options; its timestamp where it did not come from a timer.
local function scheduledTimeOf(key)
  local found = redis.call('HMGET', key, 'opts', 'timestamp')
  local marked = found[1] and string.match(found[1], '"carillon":"[^"]* (%d+) %d+"')
  return tonumber(marked) or tonumber(found[2]) or 0
end
