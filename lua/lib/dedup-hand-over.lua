-- At the hand-over to BullMQ: its key takes over what is left of the window; ours goes.
local function handOverDedup(tag, base, queueName, record, jobId, now)
  local options = record.deduplication
  local entry = redis.call('HGET', tag .. ':dedup:' .. queueName, options.id)
  local owner, expiry = nil, 0
  if entry then owner, expiry = struct.unpack('>I7I6', entry) end
  if owner == record.inc then
    redis.call('HDEL', tag .. ':dedup:' .. queueName, options.id)
    local left = expiry - now
    if expiry == 0 then
      redis.call('SET', base .. queueName .. ':de:' .. options.id, jobId)
    elseif left > 0 then
      redis.call('SET', base .. queueName .. ':de:' .. options.id, jobId, 'PX', left)
    end
  end
end
