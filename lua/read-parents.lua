-- name     read-parents
-- purpose  tells of jobs where they stand, what they wait for and which jobs wait for them
-- flags    read-only
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 identities json; 5 children count
-- returns  OK now found(list of state, record or "", after json or "", outcome or "", children(list of identity), more(count)) | WRONG_LAYOUT
-- cost     O(n children) for n <= 100 identities

local tag, layout, base, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "parents"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local found = {}
for _, identity in ipairs(cjson.decode(ARGV[4])) do
  local at = tag .. ':' .. watch.bucketOf(identity)
  local state, text = parents.stateOf(tag, base, identity)
  if state == 'schedule' or state == 'telling' then text = redis.call('HGET', at .. ':jobs', identity) end
  if state == 'open' and redis.call('HEXISTS', base .. identity, 'processedOn') == 1 then state = 'started' end
  local after = redis.call('HGET', at .. ':after', identity) or ''
  if string.find(after, '"x":', 1, true) then
    -- Of one that ended by policy; not of a later job of its id.
    if state == 'cancelled' or state == 'skipped' then state = cjson.decode(after).x[1] else after = '' end
  end
  local children = tag .. ':children:' .. identity
  local count = redis.call('SCARD', children)
  -- A large fan-out is shown in part; which part does not matter.
  local list = count == 0 and {} or redis.call('SRANDMEMBER', children, most)
  for _, value in ipairs({ state, text or '', after,
    redis.call('HGET', at .. ':outcomes', identity) or '', list, count - #list }) do
    found[#found + 1] = value
  end
end
return { 'OK', clockNow(), found }
