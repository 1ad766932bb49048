-- Runs that others wait for (parents), and those that wait (children). An identity is <queue>:<run id>.
-- T:<b>:parents   zset  identity -> when it is looked at next; T:looks: bucket -> the earliest of them
-- T:<b>:outcomes  hash  identity -> <outcome>|<decided at>|<how far its children were told, * for all>|<reason>
-- T:<b>:after     hash  child -> {"e":[[parent, on, outcome or ""], ...],"f":policy,"l":policy of lost parents}; of one that
--                       ended by policy also "x":[how, reason], for those who look, until the first parent's outcome is dropped
-- T:children:<id> set   its children, as long as its outcome is kept
-- T:watched       set   parents that are not in BullMQ yet; a schedule stands for all its runs
-- A parent is hung on a latch when it goes into its queue: by BullMQ's own fields of a parent, so that the very script
-- which finishes the run writes down how, whatever becomes of its hash then. T:latch:dependencies holds the keys of
-- runs under way, :processed and :failed BullMQ's word; T:latch itself never exists, or BullMQ would take it for a job.
-- One table instead of many locals: a script may have 200 of those.
local watch = {}
do
  local crcTable

  -- As src/domain/buckets.ts: CRC16 (XMODEM), modulo 256.
  function watch.bucketOf(identity)
    if not crcTable then
      crcTable = {}
      for byte = 0, 255 do
        local crc = bit.lshift(byte, 8)
        for _ = 1, 8 do
          crc = bit.band(bit.bxor(bit.lshift(crc, 1), crc >= 32768 and 4129 or 0), 65535)
        end
        crcTable[byte] = crc
      end
    end
    local crc = 0
    for i = 1, #identity do
      crc = bit.bxor(bit.band(bit.lshift(crc, 8), 65535), crcTable[bit.bxor(bit.rshift(crc, 8), string.byte(identity, i))])
    end
    return crc % 256
  end

  function watch.lookAt(tag, identity, time)
    local bucket = watch.bucketOf(identity)
    redis.call('ZADD', tag .. ':' .. bucket .. ':parents', time, identity)
    redis.call('ZADD', tag .. ':looks', 'LT', time, bucket)
  end

  -- Decides the outcome of a run that others wait for, once; its children are told at the next look. False when nobody waits.
  function watch.latch(tag, identity, outcome, reason, now)
    local at = tag .. ':' .. watch.bucketOf(identity)
    if not redis.call('ZSCORE', at .. ':parents', identity) then return false end
    redis.call('SREM', tag .. ':watched', identity)
    local text = string.format('%s|%.0f|0|%s', outcome, now, string.sub(reason, 1, 200))
    if redis.call('HSETNX', at .. ':outcomes', identity, text) == 1 then watch.lookAt(tag, identity, now) end
    return true
  end

  -- Whether a child still waits for one of its parents.
  function watch.isWaiting(tag, bucket, child)
    local text = redis.call('HGET', tag .. ':' .. bucket .. ':after', child)
    if not text then return false end
    local entry = cjson.decode(text)
    for _, edge in ipairs(entry.e) do
      if edge[3] == '' and not entry.x then return true end
    end
    return false
  end

  -- Takes back what a child waits for; `ended`: also what one waited for that ended by policy.
  function watch.forget(tag, bucket, child, ended)
    local key = tag .. ':' .. bucket .. ':after'
    local text = redis.call('HGET', key, child)
    if not text then return end
    local entry = cjson.decode(text)
    if entry.x and not ended then return end
    redis.call('HDEL', key, child)
    for _, edge in ipairs(entry.e) do redis.call('SREM', tag .. ':children:' .. edge[1], child) end
  end

  -- Hangs a run that BullMQ has and has not finished on the latch. False when it cannot be: a child of a flow tells its own parent.
  function watch.hang(tag, key, identity, now)
    local found = redis.pcall('HMGET', key, 'timestamp', 'finishedOn', 'parentKey')
    if found.err or not found[1] or found[2] then return false end
    if found[3] and found[3] ~= tag .. ':latch' then return false end
    if not found[3] then
      redis.call('HSET', key, 'parentKey', tag .. ':latch', 'parent',
        string.format('{"id":"latch","queueKey":%s,"idof":true,"since":%.0f}', cjson.encode(tag), now))
    end
    redis.call('SADD', tag .. ':latch:dependencies', key)
    redis.call('SREM', tag .. ':watched', identity)
    return true
  end

  -- The runs that a call puts into one queue: those of them that others wait for are hung on the latch.
  function watch.hangRuns(tag, queue, now)
    local asked, keys = {}, {}
    for _, runId in ipairs(queue.waiting) do
      asked[#asked + 1] = queue.name .. ':' .. runId
      keys[#asked] = runId
      local schedule = string.match(runId, '^(.+)@%d+')
      if schedule then
        asked[#asked + 1] = queue.name .. ':' .. schedule
        keys[#asked] = runId
      end
    end
    for from = 1, #asked, 1000 do
      local to = math.min(from + 999, #asked)
      local watched = redis.call('SMISMEMBER', tag .. ':watched', unpack(asked, from, to))
      for i = from, to do
        if watched[i - from + 1] == 1 then
          local identity = queue.name .. ':' .. keys[i]
          watch.hang(tag, queue.prefix .. keys[i], identity, now)
          -- What is kept of an earlier run of this id, and told, is over.
          local outcomes = tag .. ':' .. watch.bucketOf(identity) .. ':outcomes'
          if string.find(redis.call('HGET', outcomes, identity) or '', '^%l+|%d+|%*|') then
            redis.call('HDEL', outcomes, identity)
            redis.call('UNLINK', tag .. ':children:' .. identity)
          end
          watch.lookAt(tag, identity, now + 1000)
        end
      end
    end
  end
end
