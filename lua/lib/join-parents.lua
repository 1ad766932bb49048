-- The part of submit that jobs with parents go through.
-- The reply that refuses a whole call, or nil.
refusal = function(entry)
  for _, edge in ipairs(entry.e) do
    local state = parents.stateOf(tag, base, edge[1])
    if state == 'unknown' and not redis.call('ZSCORE', tag .. ':' .. watch.bucketOf(edge[1]) .. ':parents', edge[1]) then
      return { 'UNKNOWN_PARENT', edge[1] }
    end
    if state == 'schedule' then return { 'PARENT_IS_SCHEDULE', edge[1] } end
    if state == 'telling' then return { 'PARENT_BUSY', edge[1] } end
  end
  return nil
end

differ = function(item, entry)
  return parents.differ(tag, base, item.identity, entry)
end

-- True when the job waits for nothing and is to be created like any other.
joinParents = function(item, inc, requests, entry, now)
  local open, verdict, by = parents.join(tag, base, item.identity, entry, now)
  if verdict == 'cancel' then
    local what, reason = parents.wordOf(by[2], by[3]), parents.reasonOf(by[1], by[3])
    writeSpent(tag, item.bucket, item.identity, now, ENDED_CANCELLED, requests, not item.chosen)
    writeHistory(tag, now, item.identity, item.at, what, reason)
    parents.keepEnded(tag, item.identity, entry, what, reason)
    parents.tellRemoved(base, item.identity)
    watch.latch(tag, item.identity, what, reason, now)
    return false
  end
  if verdict ~= 'met' then
    writeHistory(tag, now, item.identity, item.at, verdict == 'hold' and 'held' or 'released', parents.reasonOf(by[1], by[3]))
  end
  if open == 0 and verdict ~= 'hold' then return true end
  local state = verdict == 'hold' and STATE_PAUSED or STATE_WAITING
  local record = decodeRecord(itemText(item, state, inc, requests))
  if verdict == 'hold' then record.note = parents.reasonOf(by[1], by[3]) end
  redis.call('HSET', tag .. ':' .. item.bucket .. ':jobs', item.identity, encodeRecord(record))
  countState(queueName, verdict == 'hold' and 'paused' or 'waiting', 1)
  return false
end
