-- What became of a parent, what that means for a child, and how a child is told. Needs watch, pending, spent, history.
local parents = {}
do
  local FIRST_LOOK = 1000

  -- Why a run that BullMQ has finished ended so; nil while it goes on.
  local function finishedOutcome(key)
    local job = redis.pcall('HMGET', key, 'timestamp', 'finishedOn', 'returnvalue')
    if job.err or not job[1] then return nil, false end
    if not job[2] then return nil, true end
    -- A run that succeeded at last still carries the reason of its earlier failure.
    return job[3] and 'succeeded' or 'dead', true
  end

  local SPENT_OUTCOMES = { [ENDED_CANCELLED] = 'cancelled', [ENDED_REPLACED] = 'cancelled', [ENDED_DELETED] = 'cancelled',
    [ENDED_EXPIRED] = 'skipped', [ENDED_RUN] = 'lost' }

  -- Where a parent stands: 'pending' (in our tier, then also its record's head and time), 'open' (in BullMQ), 'schedule',
  -- 'telling' (an earlier run of the id has ended, and not all its children know), 'unknown'; or its outcome.
  function parents.stateOf(tag, base, identity)
    local at = tag .. ':' .. watch.bucketOf(identity)
    local text = redis.call('HGET', at .. ':jobs', identity)
    local latched = redis.call('HGET', at .. ':outcomes', identity)
    local outcome, told = string.match(latched or '', '^(%l+)|%d+|([^|]*)|')
    if text then
      if (string.byte(text) or 0) % 16 == KIND_SCHEDULE then return 'schedule' end
      if outcome and told ~= '*' then return 'telling' end
      return 'pending', text
    end
    if outcome then return outcome end
    local key = base .. identity
    -- What was set aside has not run; what we dispatched under its id since has nothing to do with that.
    if redis.call('HEXISTS', at .. ':quarantine', identity) == 1 then
      local opts = redis.pcall('HGET', key, 'opts')
      if type(opts) ~= 'string' or not string.find(opts, '"carillon":"', 1, true) then return 'lost' end
    end
    local finished, stands = finishedOutcome(key)
    if finished then return finished end
    if stands then return 'open' end
    if redis.call('HEXISTS', tag .. ':latch:processed', key) == 1 then return 'succeeded' end
    if redis.call('HEXISTS', tag .. ':latch:failed', key) == 1 then return 'dead' end
    -- Hung on the latch, without a word of BullMQ, and gone: somebody removed it.
    if redis.call('SISMEMBER', tag .. ':latch:dependencies', key) == 1 then return 'removed' end
    for _, short in ipairs({ false, true }) do
      local _, how = readSpent(tag, watch.bucketOf(identity), identity, short)
      if how then return SPENT_OUTCOMES[how] or 'lost' end
    end
    return 'unknown'
  end

  function parents.isDecided(state)
    return state ~= 'pending' and state ~= 'open' and state ~= 'unknown' and state ~= 'telling' and state ~= 'schedule'
  end

  -- From now on the outcome of this run is kept: it is hung on the latch as soon as BullMQ has it. While it is `pending`, what
  -- BullMQ has under its id is a stranger's.
  local function beginToWatch(tag, base, identity, pending, now)
    -- Its name stands for a newer run than the one whose outcome was kept.
    if redis.call('HDEL', tag .. ':' .. watch.bucketOf(identity) .. ':outcomes', identity) == 1 then
      redis.call('UNLINK', tag .. ':children:' .. identity)
    end
    if pending or not watch.hang(tag, base .. identity, identity, now) then
      redis.call('SADD', tag .. ':watched', identity)
      redis.call('HSET', tag .. ':meta', 'watched', '1')
      meta.watched = '1'
    end
    watch.lookAt(tag, identity, now + FIRST_LOOK)
  end

  -- What a decided parent means for its child: 'met', or the policy that is due: cancel, hold, run.
  local function judgeEdge(entry, on, outcome)
    if outcome == 'lost' then return entry.l end
    if on == 'completion' or (on == 'success' and outcome == 'succeeded') or (on == 'failure' and outcome == 'dead') then return 'met' end
    return entry.f
  end

  function parents.reasonOf(parent, outcome)
    return 'parent ' .. parent .. ' ' .. outcome
  end

  -- How an end by policy is called: a failure that did not come is no reason to worry.
  function parents.wordOf(on, outcome)
    return on == 'failure' and outcome == 'succeeded' and 'skipped' or 'cancelled'
  end

  -- Judges all edges of a new child, and begins to watch what is undecided. Returns how many are undecided, and the verdict of those
  -- that are decided (met, run, hold or cancel) with the edge that gave it.
  function parents.join(tag, base, child, entry, now)
    local open, verdict, by, pending = 0, 'met', nil, {}
    local weights = { met = 0, run = 1, hold = 2, cancel = 3 }
    for _, edge in ipairs(entry.e) do
      local state = parents.stateOf(tag, base, edge[1])
      if parents.isDecided(state) then
        edge[3] = state
        local judged = judgeEdge(entry, edge[2], state)
        if weights[judged] > weights[verdict] then verdict, by = judged, edge end
      else
        edge[3] = ''
        open = open + 1
        pending[edge[1]] = state == 'pending'
      end
    end
    -- Of an earlier job of the id.
    watch.forget(tag, watch.bucketOf(child), child, true)
    if verdict == 'cancel' or open == 0 then return open, verdict, by end
    for _, edge in ipairs(entry.e) do
      if edge[3] == '' then
        beginToWatch(tag, base, edge[1], pending[edge[1]], now)
        redis.call('SADD', tag .. ':children:' .. edge[1], child)
      end
    end
    redis.call('HSET', tag .. ':' .. watch.bucketOf(child) .. ':after', child, cjson.encode(entry))
    return open, verdict, by
  end

  -- What a child waited for that ended by policy stays as long as its parents' outcomes do; then that of the first takes it along.
  function parents.keepEnded(tag, child, entry, what, reason)
    local kept = false
    for _, edge in ipairs(entry.e) do
      if edge[3] ~= '' and redis.call('HEXISTS', tag .. ':' .. watch.bucketOf(edge[1]) .. ':outcomes', edge[1]) == 1 then
        redis.call('SADD', tag .. ':children:' .. edge[1], child)
        kept = true
      end
    end
    entry.x = { what, reason }
    if kept then redis.call('HSET', tag .. ':' .. watch.bucketOf(child) .. ':after', child, cjson.encode(entry)) end
  end

  -- Whether a pending job does not wait for what is asked of it once more. One that waits for nothing any more has waited for
  -- whatever ended, and let it be.
  function parents.differ(tag, base, child, entry)
    local bucket = watch.bucketOf(child)
    local text = redis.call('HGET', tag .. ':' .. bucket .. ':after', child)
    if text and not cjson.decode(text).x then
      local stored, on = cjson.decode(text), {}
      for _, edge in ipairs(stored.e) do on[edge[1]] = edge[2] end
      local same = #stored.e == #entry.e and stored.f == entry.f and stored.l == entry.l
      for _, edge in ipairs(entry.e) do same = same and on[edge[1]] == edge[2] end
      if same then return false end
      if watch.isWaiting(tag, bucket, child) then return true end
    end
    for _, edge in ipairs(entry.e) do
      local state = parents.stateOf(tag, base, edge[1])
      if state ~= 'unknown' and (not parents.isDecided(state) or judgeEdge(entry, edge[2], state) == 'cancel') then return true end
    end
    return false
  end

  -- As BullMQ tells of a delayed job that is removed.
  function parents.tellRemoved(base, identity)
    local queueName, jobId = string.match(identity, '^([^:]+):(.+)$')
    local queue = openQueue(base, queueName)
    if queue.broken then return end
    redis.call('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'removed', 'jobId', jobId, 'prev', 'delayed')
  end

  -- Ends a child that is not to run any more; its own children are told in turn.
  local function endChild(tag, base, bucket, child, record, entry, what, reason, now)
    parents.keepEnded(tag, child, entry, what, reason)
    dropPending(tag, bucket, child, record, string.match(child, '^[^:]+'))
    writeSpent(tag, bucket, child, now, ENDED_CANCELLED, record.requests, hasFlag(record.flags, FLAG_GENERATED))
    writeHistory(tag, now, child, record.at, what, reason)
    parents.tellRemoved(base, child)
    watch.latch(tag, child, what, reason, now)
  end

  -- Tells one child of one parent's outcome; done before, it does nothing. What happened: released, held, ended, or nil.
  function parents.release(tag, base, child, parent, outcome, now)
    local bucket = watch.bucketOf(child)
    local at = tag .. ':' .. bucket
    local text = redis.call('HGET', at .. ':after', child)
    if not text then return nil end
    local entry = cjson.decode(text)
    local open, met = 0, nil
    for _, edge in ipairs(entry.e) do
      if edge[1] == parent and edge[3] == '' then
        edge[3] = outcome
        met = edge
      end
      if edge[3] == '' then open = open + 1 end
    end
    if not met then return nil end
    redis.call('HSET', at .. ':after', child, cjson.encode(entry))
    -- It ended before: what stands under its id now is another.
    if entry.x then return nil end
    local read, record = pcall(decodeRecord, redis.call('HGET', at .. ':jobs', child) or '')
    if not read or (record.state ~= STATE_WAITING and record.state ~= STATE_PAUSED) then return nil end
    local verdict = judgeEdge(entry, met[2], outcome)
    local reason = parents.reasonOf(parent, outcome)
    if verdict == 'cancel' then
      endChild(tag, base, bucket, child, record, entry, parents.wordOf(met[2], outcome), reason, now)
      return 'ended'
    end
    local state = record.state
    if verdict == 'hold' then state, record.note = STATE_PAUSED, reason .. (record.note and '; before: ' .. record.note or '')
    elseif open == 0 and state == STATE_WAITING then state = STATE_SCHEDULED end
    if verdict == 'run' or verdict == 'hold' then writeHistory(tag, now, child, record.at, verdict == 'run' and 'released' or 'held', reason) end
    if state == record.state and verdict ~= 'hold' then return nil end
    local queueName = string.match(child, '^[^:]+')
    countRecord(queueName, record, -1)
    record.state = state
    countRecord(queueName, record, 1)
    record.ver = takeInc(tag, now, 1)
    storePending(tag, bucket, child, record, now)
    return verdict == 'hold' and 'held' or 'released'
  end
end
