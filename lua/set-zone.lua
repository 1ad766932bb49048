-- name     set-zone
-- purpose  says with which offsets the ticks of a time zone are computed from now on, by compare-and-set
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 zone text; 4 expected text("" for none); 5 wanted text; 6 how word(move | keep)
-- returns  OK | CONFLICT | WRONG_LAYOUT
-- cost     O(1)
-- move: pending ticks were computed with the expected offsets, and each bucket's are to be carried over (carry-zone);
-- a zone whose ticks are being carried over already is not moved again before every bucket is done.

local tag, layout, zone, expected, wanted, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

--- @include "record"
--- @include "shard"

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local zones, moves = tag .. ':zones', tag .. ':zone-moves'
if (redis.call('HGET', zones, zone) or '') ~= expected then return { 'CONFLICT' } end
if how == 'move' then
  if redis.call('HSETNX', moves, zone, expected) == 0 then return { 'CONFLICT' } end
end
redis.call('HSET', zones, zone, wanted)
return { 'OK' }
