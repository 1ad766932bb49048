-- name     list-jobs
-- purpose  one page of a bucket's records, filtered by queue, kind and state
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 bucket number; 5 cursor text; 6 count number; 7 queue text; 8 kind text; 9 states text
-- returns  OK cursor records(list of identity, record) | WRONG_LAYOUT
-- cost     O(count), count <= 200

--- @include "record"
--- @include "shard"

local tag, layout, bucket = ARGV[1], ARGV[2], ARGV[4]
local queueName, kind, states = ARGV[7], ARGV[8], ARGV[9]
if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local page = redis.call('HSCAN', tag .. ':' .. bucket .. ':jobs', ARGV[5], 'COUNT', ARGV[6])
local found = {}
local wanted = queueName .. ':'
for i = 1, #page[2], 2 do
  local identity, text = page[2][i], page[2][i + 1]
  local head, state = string.byte(text, 1, 2)
  local fits = (queueName == '' or string.sub(identity, 1, #wanted) == wanted)
    and (kind == '' or tostring((head or 0) % 16) == kind)
    and (states == '' or string.find(states, ',' .. math.floor((state or 0) / 16) .. ',', 1, true))
  if fits then
    found[#found + 1] = identity
    found[#found + 1] = text
  end
end
return { 'OK', page[1], found }
