-- name     announce-parents
-- purpose  keeps the outcomes of jobs that are about to be added, because others that follow will wait for them
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 identities json
-- returns  OK now | WRONG_LAYOUT
-- cost     O(n log N) for n <= 250 identities

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "watch"

local tag, layout = ARGV[1], ARGV[2]
-- What nobody added by then is forgotten (ms).
local PATIENCE = 600000

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
for _, identity in ipairs(cjson.decode(ARGV[4])) do
  local bucket = watch.bucketOf(identity)
  -- One that BullMQ has, or that is known to have ended, is judged when a child asks for it.
  if not redis.call('ZSCORE', tag .. ':' .. bucket .. ':parents', identity) then watch.lookAt(tag, identity, now + PATIENCE) end
  redis.call('SADD', tag .. ':watched', identity)
end
redis.call('HSET', tag .. ':meta', 'watched', '1')
return { 'OK', now }
