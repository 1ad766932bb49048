-- The place of a run that is to be changed; or nil and the reply that the script gives instead.
local function openRun(tag, layout, bucket, identity, queue, runId, request)
  if not openShard(tag, layout) then return nil, { 'WRONG_LAYOUT' } end
  if redis.call('HEXISTS', tag .. ':' .. bucket .. ':jobs', identity) == 1 then return nil, { 'PENDING' } end
  for _, short in ipairs({ false, true }) do
    local _, _, requests = readSpent(tag, bucket, identity, short)
    local answer = answeredBefore(tag, bucket, identity, requests or '', request)
    if answer then return nil, { answer == ANSWER_ASKED and 'ASKED' or 'OK', '', clockNow() } end
  end
  if queue.broken then return nil, { 'QUEUE_BROKEN', queue.broken } end
  local place = runPlace.of(queue.prefix, runId)
  if not place then return nil, { 'NOT_FOUND' } end
  if place == 'completed' or place == 'failed' then return nil, { 'FINISHED', place } end
  return place
end
