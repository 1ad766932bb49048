-- The ledger of a schedule: a ring of the last rows in one hash, slot -> "<scheduled for>|<what>|<when>|<suffix>|<reason>".
-- One row a tick, written when its fate is known. Only a plain tick's is owed at first: the record tells it all, and
-- whatever changes the record next writes it. Until then those who read the ledger add it.
local settleRow

local function writeRow(tag, identity, record, row)
  if record.keptRows == 0 then return end
  settleRow(tag, identity, record)
  -- pcall: a key of another type under that name, which doctor tells of, costs the row and stops no schedule.
  redis.pcall('HSET', tag .. ':ledger:' .. identity, record.rows % record.keptRows, string.format('%d|%s|%d|%s|%s', row.at,
    row.what, row.now, row.suffix or '', row.reason or ''))
  record.rows = (record.rows + 1) % OWED_ROW
end

-- Before `last` or the open runs change. Written twice, because the record was not stored then, it is the same row.
function settleRow(tag, identity, record)
  if not record.owed then return end
  record.owed = false
  local since = record.last
  for _, run in ipairs(record.open) do
    if run.at == record.last and run.kind == RUN_TICK then since = run.since end
  end
  writeRow(tag, identity, record, { at = record.last, what = RUN_WORDS[RUN_TICK], now = since })
end
