-- name     zone-users
-- purpose  one page of a bucket's schedules whose definition names one of some time zones
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 bucket number; 4 cursor text; 5 count number; 6 zones text(comma list)
-- returns  OK now cursor items(list of identity, record) | WRONG_LAYOUT
-- cost     O(count), count <= 200

local tag, layout, bucket = ARGV[1], ARGV[2], ARGV[3]

--- @include "clock"
--- @include "record"
--- @include "shard"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local zones = {}
for zone in string.gmatch(ARGV[6], '[^,]+') do zones[zone] = true end
-- By the stored form; within a text its quotes would be escaped.
local function namesZone(policies)
  return zones[string.match(policies, '"tz":"([^"]+)"') or ''] == true
end
local page = redis.call('HSCAN', tag .. ':' .. bucket .. ':jobs', ARGV[4], 'COUNT', ARGV[5])
local items = {}
for i = 1, #page[2], 2 do
  local text = page[2][i + 1]
  if string.find(text, '"tz":"', 1, true) then
    local read, record = pcall(decodeRecord, text)
    if read and record.kind == KIND_SCHEDULE and namesZone(record.policies) then
      items[#items + 1] = page[2][i]
      items[#items + 1] = text
    end
  end
end
return { 'OK', clockNow(), page[1], items }
