-- Gates: what limits the dispatch of a queue, and the index of what is held by them.
-- T:gates               hash  queue -> its limits as JSON, see src/domain/gate.ts; the empty name pauses every queue
-- T:gate:<queue>:<group> zset byte of the bucket + identity -> its order: time + priority · ageing
-- T:gate-ring:<queue>   zset  group with something held -> its place: rising, about when it had its last turn
-- T:gate-tokens:<queue> hash  '' and g<group> -> <tokens>|<as of, ms>
-- T:gate-heads          zset  queue with something held -> when it is drained next
-- T:gate-parked         set   queues whose schedules are parked while the queue is on hold
-- One table instead of many locals: a script may have 200 of those.
local gate = {}
do
  local AGEING, UNMARKED = 60000, 10
  -- What is on hold is drained never, until somebody releases it.
  gate.NEVER = 9000000000000000
  local known, groups, announced = {}, {}, {}

  -- The limits of a queue, or false; `hold` when nothing of it is dispatched, for whatever reason. Asked once a queue and
  -- call.
  function gate.of(tag, queueName)
    local limits = known[queueName]
    if limits ~= nil then return limits end
    local texts = redis.pcall('HMGET', tag .. ':gates', queueName, '')
    limits = false
    if texts[1] then
      local read, found = pcall(cjson.decode, texts[1])
      limits = read and type(found) == 'table' and found
    end
    if texts[2] or limits and limits.paused then
      limits = limits or {}
      limits.hold = true
    end
    known[queueName] = limits
    return limits
  end

  -- The tenant among a run's options; the empty text for none.
  function gate.groupOf(opts)
    if not string.find(opts, '"group"', 1, true) then return '' end
    local group = groups[opts]
    if not group then
      local read, options = pcall(cjson.decode, opts)
      group = read and type(options) == 'table' and type(options.group) == 'string' and options.group or ''
      groups[opts] = group
    end
    return group
  end

  function gate.member(bucket, identity)
    return string.char(bucket) .. identity
  end

  function gate.order(limits, at, priority)
    if priority == 0 then priority = limits and limits.unmarked or UNMARKED end
    return at + priority * (limits and limits.ageing or AGEING)
  end

  -- Behind all other groups of the queue: a place that no other has, or names would decide.
  function gate.toBack(tag, queueName, group, now)
    local ring = tag .. ':gate-ring:' .. queueName
    local last = redis.call('ZRANGE', ring, -1, -1, 'WITHSCORES')
    redis.call('ZADD', ring, math.max(now, (tonumber(last[2]) or 0) + 1), group)
  end

  -- Into the index. The record is the caller's.
  function gate.put(tag, queueName, bucket, identity, at, priority, opts, now)
    local group = gate.groupOf(opts)
    local order = gate.order(gate.of(tag, queueName), at, priority)
    redis.call('ZADD', tag .. ':gate:' .. queueName .. ':' .. group, order, gate.member(bucket, identity))
    local ring = queueName .. ':' .. group
    if announced[ring] then return end
    announced[ring] = true
    if not redis.call('ZSCORE', tag .. ':gate-ring:' .. queueName, group) then gate.toBack(tag, queueName, group, now) end
    redis.call('ZADD', tag .. ':gate-heads', 'NX', now, queueName)
  end

  -- Out of the index; an empty group is taken from the ring when its turn comes.
  function gate.remove(tag, queueName, bucket, identity, group)
    redis.call('ZREM', tag .. ':gate:' .. queueName .. ':' .. group, gate.member(bucket, identity))
  end

  -- A run of a schedule as a record of its own, beside the schedule.
  function gate.holdRun(tag, bucket, queueName, runId, record, at, now)
    local jobs, identity = tag .. ':' .. bucket .. ':jobs', queueName .. ':' .. runId
    local text = encodeRecord({ format = FORMAT, kind = KIND_JOB, state = STATE_HELD, flags = 0, inc = record.inc, ver = record.inc, at = at,
      requests = '', priority = record.priority, lifo = record.lifo, timestamp = at, name = record.name, data = record.data, opts = record.opts })
    if redis.call('HSETNX', jobs, identity, text) == 0 then return end
    gate.put(tag, queueName, bucket, identity, at, record.priority, record.opts, now)
    countState(queueName, 'held', 1)
  end

  -- Whether a run of a schedule is held, or was and is paused now: it is open.
  function gate.hasRun(tag, bucket, queueName, runId)
    return redis.call('HEXISTS', tag .. ':' .. bucket .. ':jobs', queueName .. ':' .. runId) == 1
  end
end
