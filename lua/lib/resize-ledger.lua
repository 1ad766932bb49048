-- Slots are counted modulo the size of the ring: another size needs other slots. The newest rows stay, as many as both
-- sizes hold, or backfill would run their ticks again.
local function resizeLedger(tag, identity, record, kept)
  local key, old = tag .. ':ledger:' .. identity, record.keptRows
  local rows, slots = {}, {}
  -- pcall: a key of another type under that name holds no rows.
  local read = old > 0 and kept > 0 and redis.pcall('HGETALL', key) or {}
  for i = 1, read.err and 0 or #read, 2 do rows[tonumber(read[i])] = read[i + 1] end
  -- From the oldest slot, the next one to be written, to the newest.
  for back = math.min(old, kept), 1, -1 do
    local row = rows[(record.rows - back) % old]
    if row then
      slots[#slots + 1] = #slots / 2
      slots[#slots + 1] = row
    end
  end
  redis.call('UNLINK', key)
  if #slots > 0 then redis.call('HSET', key, unpack(slots)) end
  record.keptRows, record.rows = kept, #slots / 2
end
