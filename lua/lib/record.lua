-- The record codec's Lua half; src/redis/record.ts is its other half and documents the layout.
-- job:      >B format|kind, B state|requests, B flags, I7 inc, I6 at, requests x 8 bytes, B name length, I3 data length,
--           [1: I7 ver] [2: I4 priority + lifo·2^24 + after·2^25] [4: I6 timestamp] [16: I2 note length],
--           name, data, options, note. Flag 8: the options hold deduplication (`de`)
-- schedule: the same, and after the optional fields
--           I6 last, I6 cur, I6 curFire, I6 next, I6 nextFire, I6 check, I4 count, I4 rows, I4 grace, I4 run timeout,
--           B missed, B overlap, B max open runs, B max concurrent, B kept rows, B pause after, B failures, I2 skips in a row,
--           I3 policies length, I2 open runs' length, I2 waiting runs' length;
--           policies, open and waiting runs (runs.lua) stand behind the options
-- Locals are read in a step, globals in two look-ups; a pop or a bulk does so thousands of times.
local substring, packBytes, unpackBytes = string.sub, struct.pack, struct.unpack
local FORMAT = 1
local KIND_JOB, KIND_SCHEDULE = 0, 1
local STATE_SCHEDULED, STATE_PAUSED, STATE_PARKED, STATE_WAITING, STATE_HELD, STATE_SUSPENDED, STATE_ENDED = 1, 2, 3, 4, 5, 7, 9
local KNOWN_STATES = { [1] = true, [2] = true, [3] = true, [4] = true, [5] = true, [7] = true, [9] = true }
local FLAG_VER, FLAG_PRIORITY, FLAG_TIMESTAMP, FLAG_DEDUP, FLAG_NOTE = 1, 2, 4, 8, 16
local FLAG_GENERATED, FLAG_OVERDUE, FLAG_RESUMED = 32, 64, 128
-- Of a schedule two of them say something else: its tick came while its queue was broken; no tick follows the known ones.
local FLAG_UNSERVED, FLAG_LAST = 8, 32
-- And one of a job: its options hold a deadline.
local FLAG_DEADLINE = 64
local MAX_REQUESTS = 4
local LIFO = 16777216
-- Beside it, of a schedule: its policies say which schedules it follows.
local AFTER = 33554432
-- Milliseconds of inc: inc = ms·1024 + n, see shard.lua.
local INC_PER_MS = 1024

-- What a schedule's bytes of policy stand for.
local MISSED_ALL = 2
local OVERLAP_SKIP, OVERLAP_BUFFER_ONE, OVERLAP_BUFFER_ALL, OVERLAP_CANCEL_OTHER, OVERLAP_ALLOW = 0, 1, 2, 3, 4
-- In the count of rows: the ledger lacks the row of the last tick.
local OWED_ROW = 2147483648
-- The end of 9999, in ms.
local LAST_TIME = 253402300799999

local function hasFlag(flags, flag)
  return math.floor(flags / flag) % 2 == 1
end

-- A time of a record: whole ms up to the end of 9999; raises on any other value.
local function packedTime(value)
  if value ~= value or value < 0 or value > LAST_TIME or value % 1 ~= 0 then
    error('time out of range: ' .. tostring(value))
  end
  return value
end

--- @include "runs"

-- Raises on anything that is not a whole record of this format: call it in pcall. What it reads can be packed again.
local function decodeRecord(text)
  local head, state, flags, inc, at, p = unpackBytes('>BBBI7I6', text)
  -- A schedule's table has its size from the start: grown field by field it would be made anew six times over.
  local r = head % 16 == KIND_SCHEDULE and { format = 0, kind = 0, state = 0, flags = 0, inc = 0, at = 0, requests = '', ver = 0, priority = 0,
    lifo = false, after = false, timestamp = false, last = 0, cur = 0, curFire = 0, next = 0, nextFire = 0, check = 0, count = 0, rows = 0, owed = false,
    grace = 0, runTimeout = 0, missed = 0, overlap = 0, maxOpen = 0, maxConcurrent = 0, keptRows = 0, pauseAfter = 0, failures = 0, skips = 0,
    name = '', data = '', opts = '', policies = '', open = false, waiting = false } or {}
  r.flags, r.inc, r.at = flags, inc, at
  r.format = math.floor(head / 16)
  r.kind = head % 16
  r.state = math.floor(state / 16)
  -- Formats rise by one: the next one is a newer version's, any other is damage.
  if r.format == FORMAT + 1 then error('FORMAT') end
  if r.format ~= FORMAT then error('unknown format ' .. r.format) end
  if r.kind > KIND_SCHEDULE then error('unknown kind ' .. r.kind) end
  if not KNOWN_STATES[r.state] then error('unknown state ' .. r.state) end
  packedTime(r.at)
  local requests = state % 16
  r.requests = substring(text, p, p + requests * 8 - 1)
  local nameLength, dataLength
  nameLength, dataLength, p = unpackBytes('>BI3', text, p + requests * 8)
  r.ver, r.priority, r.lifo = r.inc, 0, false
  local noteLength, policiesLength, openLength, waitingLength = 0, 0, 0, 0
  if flags % 32 > 0 then
    if hasFlag(flags, FLAG_VER) then r.ver, p = unpackBytes('>I7', text, p) end
    if hasFlag(flags, FLAG_PRIORITY) then
      r.priority, p = unpackBytes('>I4', text, p)
      if r.priority >= AFTER then r.priority, r.after = r.priority - AFTER, true end
      if r.priority >= LIFO then r.priority, r.lifo = r.priority - LIFO, true end
    end
    if hasFlag(flags, FLAG_TIMESTAMP) then
      r.timestamp, p = unpackBytes('>I6', text, p)
      packedTime(r.timestamp)
    end
    if hasFlag(flags, FLAG_NOTE) then noteLength, p = unpackBytes('>I2', text, p) end
  end
  if r.kind == KIND_SCHEDULE then
    r.last, r.cur, r.curFire, r.next, r.nextFire, r.check, p = unpackBytes('>I6I6I6I6I6I6', text, p)
    r.count, r.rows, r.grace, r.runTimeout, r.missed, r.overlap, r.maxOpen, r.maxConcurrent, r.keptRows, r.pauseAfter, r.failures,
      r.skips, p = unpackBytes('>I4I4I4I4BBBBBBBI2', text, p)
    policiesLength, openLength, waitingLength, p = unpackBytes('>I3I2I2', text, p)
    r.owed = r.rows >= OWED_ROW
    if r.owed then r.rows = r.rows - OWED_ROW end
    packedTime(math.max(r.last, r.cur, r.curFire, r.next, r.nextFire, r.check))
  end
  local optsLength = #text - p + 1 - nameLength - dataLength - policiesLength - openLength - waitingLength - noteLength
  if optsLength < 0 then error('the lengths do not fit the record') end
  r.name = substring(text, p, p + nameLength - 1)
  p = p + nameLength
  r.data = substring(text, p, p + dataLength - 1)
  p = p + dataLength
  r.opts = substring(text, p, p + optsLength - 1)
  p = p + optsLength
  if r.kind == KIND_SCHEDULE then
    r.policies = substring(text, p, p + policiesLength - 1)
    p = p + policiesLength
    r.open = readRuns(substring(text, p, p + openLength - 1))
    p = p + openLength
    r.waiting = readRuns(substring(text, p, p + waitingLength - 1))
    p = p + waitingLength
  end
  if noteLength > 0 then r.note = substring(text, p, p + noteLength - 1) end
  if not r.timestamp then r.timestamp = math.floor(r.inc / INC_PER_MS) end
  return r
end

local function setFlag(r, flag, on)
  if hasFlag(r.flags, flag) ~= on then r.flags = r.flags + (on and flag or -flag) end
end

-- The inverse. Raises when a value does not fit: call it before any write, in pcall where the values came from outside.
local function encodeRecord(r)
  local flags = r.flags - r.flags % 32 + (hasFlag(r.flags, FLAG_DEDUP) and FLAG_DEDUP or 0)
  local optional, runs = {}, ''
  if r.ver ~= r.inc then
    flags = flags + FLAG_VER
    optional[#optional + 1] = packBytes('>I7', r.ver)
  end
  if r.priority > 0 or r.lifo or r.after then
    flags = flags + FLAG_PRIORITY
    optional[#optional + 1] = packBytes('>I4', r.priority + (r.lifo and LIFO or 0) + (r.after and AFTER or 0))
  end
  if r.timestamp ~= math.floor(r.inc / INC_PER_MS) then
    flags = flags + FLAG_TIMESTAMP
    optional[#optional + 1] = packBytes('>I6', packedTime(r.timestamp))
  end
  if r.note then
    flags = flags + FLAG_NOTE
    optional[#optional + 1] = packBytes('>I2', #r.note)
  end
  if r.kind == KIND_SCHEDULE then
    local open, waiting = packRuns(r.open), packRuns(r.waiting)
    optional[#optional + 1] = packBytes('>I6I6I6I6I6I6', packedTime(r.last), packedTime(r.cur), packedTime(r.curFire),
      packedTime(r.next), packedTime(r.nextFire), packedTime(r.check))
      .. packBytes('>I4I4I4I4BBBBBBBI2I3I2I2', r.count, r.rows + (r.owed and OWED_ROW or 0), r.grace, r.runTimeout,
      r.missed, r.overlap, r.maxOpen, r.maxConcurrent, r.keptRows, r.pauseAfter, r.failures, r.skips, #r.policies, #open, #waiting)
    runs = r.policies .. open .. waiting
  end
  return packBytes('>BBBI7I6', r.format * 16 + r.kind, r.state * 16 + #r.requests / 8, flags, r.inc, packedTime(r.at))
    .. r.requests .. packBytes('>BI3', #r.name, #r.data) .. table.concat(optional) .. r.name .. r.data .. r.opts .. runs .. (r.note or '')
end
