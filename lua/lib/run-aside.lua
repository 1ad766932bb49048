-- A run that a person pauses while BullMQ has it becomes a paused record of ours. BullMQ's hash stays, with its attempts,
-- checkpoint and logs, in none of the queue's lists; resume-job puts it back. Needs run-place.

-- The record, and its text; nil and why it cannot be packed. Nothing is written yet but a step of the counter.
local function asideRecord(tag, queue, bucket, identity, runId, at, requests, note, now)
  local job = rcall('HMGET', queue.prefix .. runId, 'name', 'data', 'timestamp', 'priority')
  local opts, mark = runPlace.options(queue.prefix, runId)
  local timestamp = tonumber(job[3]) or now
  local inc = takeInc(tag, now, 1)
  local generated = readSpent(tag, bucket, identity, true)
  local record = { format = FORMAT, kind = KIND_JOB, state = STATE_PAUSED, flags = generated and FLAG_GENERATED or 0, inc = inc, ver = inc,
    at = at or tonumber(string.match(mark or '', ' (%d+) ')) or timestamp, timestamp = timestamp,
    requests = requests, priority = tonumber(job[4]) or 0, lifo = false, name = job[1] or '',
    data = job[2] or '{}', opts = opts, note = note ~= '' and note or nil }
  local packed, text = pcall(encodeRecord, record)
  if not packed then return nil, tostring(text) end
  return record, text
end

-- Of a run that stands in none of BullMQ's lists any more.
local function putAside(tag, queue, bucket, identity, runId, record, now)
  local _, mark = runPlace.options(queue.prefix, runId)
  rcall('HSET', queue.prefix .. runId, 'carillon:paused', string.format('%.0f', record.inc) .. (mark and ' ' .. mark or ''))
  rcall('HDEL', queue.prefix .. runId, 'carillon:asked')
  storePending(tag, bucket, identity, record, now)
  countRecord(queue.name, record, 1)
end
