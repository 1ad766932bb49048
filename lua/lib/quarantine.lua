-- Poison is set aside whole, with its reason: >I6 since, I2 reason length, reason, record text (I7). Those that wait for it
-- are told that it is lost: what stands under its id in BullMQ, or comes there, is not what they wait for.
--- @include "history"
local function quarantine(tag, bucket, identity, text, reason, now)
  local short = string.sub(reason, 1, 500)
  redis.call('HSET', tag .. ':' .. bucket .. ':quarantine', identity, struct.pack('>I6I2', now, #short) .. short .. text)
  writeHistory(tag, now, identity, 0, 'quarantined', short)
  watch.latch(tag, identity, 'lost', 'quarantined: ' .. short, now)
end
