-- The ledger of a schedule: a ring of the last rows in one hash, slot -> "<scheduled for>|<what>|<when>|<suffix>|<reason>".
-- One row a tick, written when its fate is known.
local function writeRow(tag, identity, record, row)
  if record.keptRows == 0 then return end
  redis.call('HSET', tag .. ':ledger:' .. identity, record.rows % record.keptRows, string.format('%d|%s|%d|%s|%s', row.at,
    row.what, row.now, row.suffix or '', row.reason or ''))
  record.rows = (record.rows + 1) % 4294967296
end
