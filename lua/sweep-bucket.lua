-- name     sweep-bucket
-- purpose  holds one page of a bucket's records against their indexes and repairs what disagrees; the record is the truth
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 owned bytes; 4 bucket number; 5 cursor text; 6 count number
-- returns  OK cursor repaired(list of identity) | FENCED | WRONG_LAYOUT
-- cost     O(count log N), count <= 200

local tag, layout, bucket = ARGV[1], ARGV[2], tonumber(ARGV[4])

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "index"
--- @include "pending"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
readOwned(ARGV[3])
local range = ownedRange(bucket)
if not range or not holdsFence(tag, range, bucket) then return { 'FENCED' } end
local now = clockNow()
local at = tag .. ':' .. bucket

local page = redis.call('HSCAN', at .. ':jobs', ARGV[5], 'COUNT', ARGV[6])
local identities = {}
for i = 1, #page[2], 2 do identities[#identities + 1] = page[2][i] end
if #identities == 0 then return { 'OK', page[1], {} } end
-- One command an index for the whole page; HSCAN gives at most a few hundred.
local due = redis.call('ZMSCORE', at .. ':due', unpack(identities))
local parked = redis.call('ZMSCORE', at .. ':parked', unpack(identities))
local planned = redis.call('ZMSCORE', at .. ':plan', unpack(identities))

local function isIndexed(i, record)
  if record.state == STATE_HELD then
    local queueName = string.match(identities[i], '^[^:]+') or ''
    local index = tag .. ':gate:' .. queueName .. ':' .. gate.groupOf(record.opts)
    if not redis.call('ZSCORE', index, gate.member(bucket, identities[i])) then return false end
    if not redis.call('ZSCORE', tag .. ':gate-ring:' .. queueName, gate.groupOf(record.opts)) then return false end
    if not redis.call('ZSCORE', tag .. ':gate-heads', queueName) then return false end
  end
  local wanted = record.state == STATE_SCHEDULED and dueTimeOf(record) or 0
  if (due[i] and tonumber(due[i]) or 0) ~= wanted then return false end
  if (record.state == STATE_PARKED) ~= (parked[i] and true or false) then return false end
  return needsPlan(record) == (planned[i] and true or false)
end

local repaired = {}
for i, identity in ipairs(identities) do
  local read, record = pcall(decodeRecord, page[2][i * 2])
  if read and not isIndexed(i, record) then
    storePending(tag, bucket, identity, record, now)
    repaired[#repaired + 1] = identity
  end
end
flushHeads(tag, now)
return { 'OK', page[1], repaired }
