-- name     set-calendar
-- purpose  stores or deletes a named calendar, or notes that its schedules are planned again
-- flags    deny-oom, allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 operation text(set, delete, settle); 4 name text; 5 request text(hex); 6 entries json(set) or version number(settle)
-- returns  OK version changed(0, 1) | NOT_FOUND | WRONG_LAYOUT
-- cost     O(bytes of the calendar)
-- A deleted calendar keeps its version and requests, so that neither ever repeats; its entries are null.
-- The field ":revision" rises with every change of any calendar.

local tag, layout, operation, name, request, given = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"

local REVISION = ':revision'
local NO_ENTRIES = 'null'
-- The bucket: a calendar is of none.
local KEPT_IN = 0
local FORM = '^{"version":(%d+),"updatedAt":(%d+),"settled":(%d+),"requests":"([^"]*)","entries":(.*)}$'
local key = tag .. ':calendars'

local function write(calendar)
  redis.call('HSET', key, name, string.format('{"version":%d,"updatedAt":%.0f,"settled":%d,"requests":"%s","entries":%s}',
    calendar.version, calendar.updatedAt, calendar.settled, calendar.requests, calendar.entries))
end

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local text = redis.call('HGET', key, name)
local calendar = { version = 0, updatedAt = 0, settled = 0, requests = '', entries = NO_ENTRIES }
if text then
  local version, updatedAt, settled, requests, entries = string.match(text, FORM)
  if version then
    calendar = { version = tonumber(version), updatedAt = tonumber(updatedAt), settled = tonumber(settled), requests = requests, entries = entries }
  end
end

if operation == 'settle' then
  if calendar.version == tonumber(given) and calendar.settled < calendar.version then
    calendar.settled = calendar.version
    write(calendar)
  end
  return { 'OK', calendar.version, 0 }
end

-- The newest few requests with the version that each one found or made; older ones that a caller named are in `spent`.
local answered = string.match(' ' .. calendar.requests, ' ' .. request .. ':(%d+)') or remembered.read(tag, KEPT_IN, ':' .. name, request)
if answered then return { 'OK', tonumber(answered), 0 } end
if operation == 'delete' and calendar.entries == NO_ENTRIES then return { 'NOT_FOUND' } end
local entries = operation == 'delete' and NO_ENTRIES or given
local changed = entries ~= calendar.entries
if changed then
  calendar.version = calendar.version + 1
  -- Nobody can name a calendar that never was.
  if calendar.version == 1 then calendar.settled = 1 end
  calendar.updatedAt = clockNow()
  calendar.entries = entries
  redis.call('HINCRBY', key, REVISION, 1)
end
local requests = { request .. ':' .. string.format('%d', calendar.version) }
for entry in string.gmatch(calendar.requests, '%S+') do
  if #requests < MAX_REQUESTS then
    requests[#requests + 1] = entry
  else
    local old, version = string.match(entry, '^(%x+):(%d+)$')
    -- In hex the top bit of one that a caller named.
    if old and old >= '8' then remembered.write(tag, KEPT_IN, ':' .. name, old, version, clockNow()) end
  end
end
calendar.requests = table.concat(requests, ' ')
write(calendar)
return { 'OK', calendar.version, changed and 1 or 0 }
