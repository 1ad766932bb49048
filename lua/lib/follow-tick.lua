-- What became of the ticks that a schedule's tick follows.
--- @include "follow"
do
  -- What a ledger tells of a tick that fired or did not, when nothing else knows it any more.
  local function fateInLedger(tag, identity, record, at)
    if record.owed and record.last == at then return 'lost' end
    local rows = redis.pcall('HVALS', tag .. ':ledger:' .. identity)
    if rows.err then return 'none' end
    for _, row in ipairs(rows) do
      local tick, what = string.match(row, '^(%d+)|([^|]*)|')
      if tonumber(tick) == at then
        if what == 'skipped' or what == 'quarantined' then return 'skipped' end
        return what == 'cancelled' and 'cancelled' or 'lost'
      end
    end
    -- Calendars, limits and other patterns: it had no such tick.
    return 'none'
  end

  -- pending, an outcome, or none when the schedule has no tick of that time.
  local function tickState(tag, base, parent, at)
    local run = parent .. '@' .. msText(at)
    local latched = redis.call('HGET', tag .. ':' .. watch.bucketOf(run) .. ':outcomes', run)
    if latched then return string.match(latched, '^%l+') end
    local key = base .. run
    if redis.call('HEXISTS', tag .. ':latch:processed', key) == 1 then return 'succeeded' end
    if redis.call('HEXISTS', tag .. ':latch:failed', key) == 1 then return 'dead' end
    local job = redis.pcall('HMGET', key, 'timestamp', 'finishedOn', 'returnvalue', 'opts')
    -- What carries no mark of ours is a stranger's job that has the run's id.
    if not job.err and job[1] and string.find(job[4] or '', '"carillon":"', 1, true) then
      if not job[2] then return 'pending' end
      return job[3] and 'succeeded' or 'dead'
    end
    if redis.call('SISMEMBER', tag .. ':latch:dependencies', key) == 1 then return 'removed' end
    -- In a gate.
    if redis.call('HEXISTS', tag .. ':' .. watch.bucketOf(parent) .. ':jobs', run) == 1 then return 'pending' end
    local read, record = pcall(decodeRecord, redis.call('HGET', tag .. ':' .. watch.bucketOf(parent) .. ':jobs', parent) or '')
    if not read or record.kind ~= KIND_SCHEDULE then return 'cancelled' end
    for _, waiting in ipairs(record.waiting) do
      if waiting.at == at then return 'pending' end
    end
    if record.last < at and record.state ~= STATE_ENDED then
      -- Its next tick is not known yet, or is this one, or an earlier one.
      if record.cur <= at then return 'pending' end
      return 'none'
    end
    return fateInLedger(tag, parent, record, at)
  end

  -- wait, run, or skip with the reason.
  function follow.judge(tag, entry, record, at)
    local base = substring(entry.queue.prefix, 1, -#entry.queueName - 2)
    local parents, definition = follow.parentsOf(entry.queueName, record.policies)
    local verdict = 'run'
    for _, parent in ipairs(parents) do
      local state = tickState(tag, base, parent, at)
      if state == 'pending' then
        verdict = 'wait'
      elseif state ~= 'none' and state ~= 'succeeded' then
        local policy = definition.onParentFailed
        if state == 'skipped' then policy = definition.onParentSkipped end
        if policy ~= 'run' then return 'skip', 'parent ' .. parent .. ' ' .. state end
      end
    end
    return verdict
  end
end
