-- The common head of the scripts that change one pending record: find it, or replay the answer to a re-sent request.
--- @include "edit-arguments"

-- The record to change; or nil and the reply that the script gives instead. `dry`: the script changes nothing, so that
-- its request is neither answered nor remembered.
local function openRecord(now, dry)
  if not openShard(tag, layout) then return nil, { 'WRONG_LAYOUT' } end
  local text = redis.call('HGET', tag .. ':' .. bucket .. ':jobs', identity)
  if not text then
    for _, short in ipairs({ false, true }) do
      local _, _, requests = readSpent(tag, bucket, identity, short)
      local answer = requests and answeredBefore(tag, bucket, identity, requests, request)
      -- What a worker was asked is answered on that side.
      if answer and answer ~= ANSWER_ASKED then return nil, { 'OK', '', now } end
    end
    return nil, { 'NOT_FOUND' }
  end
  local read, record = pcall(decodeRecord, text)
  if not read then return nil, { 'BAD_RECORD', tostring(record) } end
  if not dry then
    if answeredBefore(tag, bucket, identity, record.requests, request) then return nil, { 'OK', text, now } end
    record.requests = rememberRequest(tag, bucket, identity, record.requests, request, ANSWER_OK, now)
  end
  if record.state == STATE_HELD then record.heldIn = gate.groupOf(record.opts) end
  return record
end

-- A changed record gets a new version, so that nobody's compare-and-set meets it unseen.
local function storeEdited(record, now)
  record.ver = takeInc(tag, now, 1)
  storePending(tag, bucket, identity, record, now)
  flushCounts(tag)
  flushHeads(tag, now)
  return { 'OK', encodeRecord(record), now }
end
