-- The record text of a submitted item: the client packs all but state, inc, time and requests.
local function itemText(item, state, inc, requests)
  return packBytes('>BBBI7I6', FORMAT * 16 + KIND_JOB, state * 16 + #requests / 8, item.recordFlags, inc, item.at)
    .. requests .. item.rest
end
