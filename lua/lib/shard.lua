-- What every script knows of its shard: the layout check and the counter of inc and ver, one step a call.
-- inc is a hybrid clock (ms·1024 + n): it never repeats, never falls when TIME does, and tells when a job was accepted.
local meta = {}

local function openShard(tag, layout)
  local values = redis.call('HMGET', tag .. ':meta', 'layout', 'inc', 'spent', 'spentShort', 'watched')
  if values[1] ~= layout then return false end
  meta.inc = tonumber(values[2]) or 0
  meta.spent = values[3]
  meta.spentShort = values[4]
  meta.watched = values[5]
  return true
end

-- Reserves `count` values of the counter; the first is returned.
local function takeInc(tag, now, count)
  local first = math.max(meta.inc + 1, now * INC_PER_MS)
  meta.inc = first + count - 1
  redis.call('HSET', tag .. ':meta', 'inc', string.format('%.0f', meta.inc))
  return first
end
