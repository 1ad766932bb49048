-- name     adopt-epoch
-- purpose  standalone coordination: sets the epoch of the terms to come, if it is still the one that was read
-- flags    allow-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 expected text(empty for none); 4 epoch text
-- returns  OK | CONFLICT | WRONG_LAYOUT
-- cost     O(1)

local tag, layout, expected, epoch = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--- @include "record"
--- @include "shard"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local key = tag .. ':leader'
if (redis.call('HGET', key, 'epoch') or '') ~= expected then return { 'CONFLICT' } end
redis.call('HSET', key, 'epoch', epoch)
return { 'OK' }
