-- A run on BullMQ's side: where it stands, and how it changes its place. Needs enqueue, spent, pending.
--- @include "bullmq/isLocked"
--- @include "bullmq/addDelayedJob"
--- @include "bullmq/pushBackJobWithPriority"
--- @include "bullmq/removeDeduplicationKeyIfNeededOnRemoval"
--- @include "bullmq/removeJobKeys"
local runPlace = {}
do
  -- wait, prioritized, delayed, waiting-children, active, completed, failed, 'aside' (in none of them), or nil without a job.
  function runPlace.of(prefix, runId)
    local job = redis.pcall('HMGET', prefix .. runId, 'timestamp', 'finishedOn')
    if job.err or not job[1] then return nil end
    if isLocked(prefix, runId, '0') then return 'active' end
    for _, set in ipairs({ 'prioritized', 'delayed', 'completed', 'failed', 'waiting-children' }) do
      if rcall('ZSCORE', prefix .. set, runId) then return set end
    end
    if rcall('LPOS', prefix .. 'wait', runId) then return 'wait' end
    if rcall('LPOS', prefix .. 'active', runId) then return 'active' end
    return 'aside'
  end

  -- Takes a run out of the place where it stands.
  function runPlace.leave(prefix, runId, place)
    if place == 'wait' then rcall('LREM', prefix .. 'wait', 1, runId) else rcall('ZREM', prefix .. place, runId) end
  end

  -- Puts it where workers fetch it: at its time, by its priority, or in the order of coming.
  function runPlace.enter(queue, runId, at, priority, lifo, now)
    local key = queue.prefix .. runId
    if at > now then
      rcall('HSET', key, 'delay', msText(at - now))
      addDelayedJob(runId, queue.prefix .. 'delayed', queue.events, now, maxEventsOf(queue), queue.prefix .. 'marker', at - now)
      return
    end
    rcall('HSET', key, 'delay', '0')
    if priority == 0 then
      addJobInTargetList(queue.prefix .. 'wait', queue.prefix .. 'marker', lifo and 'RPUSH' or 'LPUSH', isPaused(queue), runId)
    elseif lifo then
      pushBackJobWithPriority(queue.prefix .. 'prioritized', priority, runId)
      addBaseMarkerIfNeeded(queue.prefix .. 'marker', isPaused(queue))
    else
      addJobWithPriority(queue.prefix .. 'marker', queue.prefix .. 'prioritized', priority, runId, queue.prefix .. 'pc', isPaused(queue))
    end
    rcall('XADD', queue.events, 'MAXLEN', '~', maxEventsOf(queue), '*', 'event', 'waiting', 'jobId', runId, 'prev', 'delayed')
  end

  -- Removes what BullMQ keeps of a run that stands in none of its lists any more.
  function runPlace.drop(prefix, runId)
    removeDeduplicationKeyIfNeededOnRemoval(prefix, runId, rcall('HGET', prefix .. runId, 'deid'))
    removeJobKeys(prefix .. runId)
  end

  -- What was spliced into the options when it was dispatched, and the client's own text; see runOptions.
  function runPlace.options(prefix, runId)
    local opts = rcall('HGET', prefix .. runId, 'opts') or '{}'
    local head, mark = string.match(opts, '^(.*),"carillon":"([^"]*)"}$')
    if not head then return opts, nil end
    return head .. '}', mark
  end

  function runPlace.marked(opts, mark)
    return mark and runOptions(opts, mark) or opts
  end

  -- Of a run that was taken aside while a person pauses it: whether this record stands for it, and its mark.
  function runPlace.setAside(prefix, runId, record)
    local note = redis.pcall('HGET', prefix .. runId, 'carillon:paused')
    if type(note) ~= 'string' then return false end
    local inc, mark = string.match(note, '^(%d+) ?(.*)$')
    return inc == string.format('%.0f', record.inc), mark ~= '' and mark or nil
  end

  -- The requests that were answered about this run.
  function runPlace.requestsOf(tag, bucket, identity)
    local known = readSpent(tag, bucket, identity, true) and true or false
    local _, _, requests = readSpent(tag, bucket, identity, known)
    return requests or ''
  end

  -- Remembers how the run ended or that it was changed, so that a repeat of the request is answered. `answer`: OK unless given.
  function runPlace.remember(tag, bucket, identity, request, how, now, answer)
    local known = readSpent(tag, bucket, identity, true) and true or false
    local endedAt, before, requests = readSpent(tag, bucket, identity, known)
    -- A job that never was ours leaves no other trace here unless it ends.
    if not before and not how then return remembered.named(tag, bucket, identity, request, answer or ANSWER_OK, now) end
    requests = rememberRequest(tag, bucket, identity, requests or '', request, answer or ANSWER_OK, now)
    writeSpent(tag, bucket, identity, how and now or endedAt, how or before, requests, known)
  end

  -- Gives a run that was taken aside back to its queue, as its record says by now.
  function runPlace.putBack(tag, queue, bucket, identity, runId, record, mark, at, now)
    local key = queue.prefix .. runId
    rcall('HDEL', key, 'carillon:paused')
    rcall('HSET', key, 'name', record.name, 'data', record.data, 'priority', record.priority)
    if record.ver ~= record.inc then
      rcall('HSET', key, 'opts', runPlace.marked(record.opts == '' and '{"attempts":0}' or record.opts, mark))
    end
    runPlace.enter(queue, runId, at, record.priority, record.lifo, now)
    dropPending(tag, bucket, identity, record, queue.name)
    writeSpent(tag, bucket, identity, now, ENDED_RUN, record.requests, hasFlag(record.flags, FLAG_GENERATED))
  end
end
