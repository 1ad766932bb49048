-- name     look-at-parents
-- purpose  decides the outcomes of runs that others wait for, and tells their children, each bucket under its fence
-- flags    deny-oom
-- keys     1 none1 NONE T:none1; 2 none2 NONE T:none2
-- args     1 tag text; 2 layout text; 3 base text; 4 owned bytes; 5 limit count; 6 keep ms
-- returns  OK now looked(count) released(count) ended(list of child and reason) open(count) nextLook(ms, 0 none) more(count) | WRONG_LAYOUT
-- cost     O(n log N) for n <= limit looks and told children, limit <= 200

local tag, layout, base, limit, keep = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5]), tonumber(ARGV[6])

--- @include "clock"
--- @include "record"
--- @include "shard"
--- @include "spent"
--- @include "enqueue"
--- @include "index"
--- @include "pending"
--- @include "history"
--- @include "parents"
--- @include "fence"
--- @include "fence-order"
--- @include "owned"

-- How often a parent is looked at that tells of itself: only for what nobody told, such as a removal by hand.
local LOOK_MIN, LOOK_MAX, LOOK_PART, LOOK_PENDING = 1000, 60000, 8, 600000
-- So many children are told in a look; the next ones in the next.
local CHILDREN = 50

if not openShard(tag, layout) then return { 'WRONG_LAYOUT' } end
local now = clockNow()
readOwned(ARGV[4])

local function isOurs(bucket)
  local range = ownedRange(bucket)
  return range and holdsFence(tag, range, bucket)
end

-- 1. BullMQ's word on runs that ended. Fields in any order: others may be another leader's.
local function collect(key, outcome)
  local fields = redis.call('HRANDFIELD', tag .. ':latch:' .. key, limit)
  for _, job in ipairs(fields) do
    local identity = string.sub(job, #base + 1)
    if isOurs(watch.bucketOf(identity)) then
      local reason = outcome == 'dead' and redis.call('HGET', tag .. ':latch:' .. key, job) or ''
      -- Nobody waits for a run of a followed schedule by name: it is kept for those who may ask.
      watch.lookAt(tag, identity, now)
      watch.latch(tag, identity, outcome, reason, now)
      redis.call('HDEL', tag .. ':latch:' .. key, job)
      if redis.call('HGET', job, 'parentKey') == tag .. ':latch' then redis.call('HDEL', job, 'parentKey', 'parent') end
    end
  end
end
collect('processed', 'succeeded')
collect('failed', 'dead')

-- 2. The looks that are due.
local looked, released, ended = 0, 0, {}

-- A schedule whose run waits for this one is served at once, not at its next look.
local function bringForward(follower)
  local bucket = watch.bucketOf(follower)
  local read, record = pcall(decodeRecord, redis.call('HGET', tag .. ':' .. bucket .. ':jobs', follower) or '')
  if not read or record.kind ~= KIND_SCHEDULE or record.state ~= STATE_SCHEDULED or #record.waiting == 0 or record.check <= now then return end
  record.check = now
  storePending(tag, bucket, follower, record, now)
end

local function tell(identity, latched)
  local outcome, at, told, reason = string.match(latched, '^(%l+)|(%d+)|([^|]*)|(.*)$')
  local children = tag .. ':children:' .. identity
  if told ~= '*' then
    local page = redis.call('SSCAN', children, told, 'COUNT', CHILDREN)
    for _, child in ipairs(page[2]) do
      looked = looked + 1
      local what = parents.release(tag, base, child, identity, outcome, now)
      if what == 'released' then released = released + 1 end
      if what == 'ended' or what == 'held' then
        ended[#ended + 1] = child
        ended[#ended + 1] = what .. ' ' .. parents.reasonOf(identity, outcome)
      end
    end
    told = page[1] == '0' and '*' or page[1]
    local schedule = string.match(identity, '^(.+)@%d+')
    if schedule then
      for _, follower in ipairs(redis.call('SMEMBERS', tag .. ':followers:' .. schedule)) do bringForward(follower) end
    end
    redis.call('HSET', tag .. ':' .. watch.bucketOf(identity) .. ':outcomes', identity, outcome .. '|' .. at .. '|' .. told .. '|' .. reason)
    return told == '*' and at + keep or now
  end
  if at + keep > now then return at + keep end
  -- Its time is over: with it go the edges of children that wait for nothing any more.
  for _, child in ipairs(redis.call('SPOP', children, CHILDREN)) do
    looked = looked + 1
    local bucket = watch.bucketOf(child)
    if not watch.isWaiting(tag, bucket, child) then watch.forget(tag, bucket, child, true) end
  end
  if redis.call('EXISTS', children) == 1 then return now end
  redis.call('HDEL', tag .. ':' .. watch.bucketOf(identity) .. ':outcomes', identity)
  redis.call('SREM', tag .. ':latch:dependencies', base .. identity)
  return nil
end

local function clamp(ms, least, most)
  return math.max(least, math.min(ms, most))
end

-- When it is looked at again; nil for never.
local function look(bucket, identity)
  local latched = redis.call('HGET', tag .. ':' .. bucket .. ':outcomes', identity)
  local state, text = parents.stateOf(tag, base, identity)
  if latched then return tell(identity, latched) end
  if state == 'pending' then
    local _, _, _, _, at = unpackBytes('>BBBI7I6', text)
    return now + clamp(at - now, LOOK_MIN, LOOK_PENDING)
  end
  if state == 'open' then
    local known = redis.call('HGET', base .. identity, 'parent')
    local since = known and tonumber(string.match(known, '"since":(%d+)'))
    if not since then watch.hang(tag, base .. identity, identity, now) end
    return now + clamp((now - (since or now)) / LOOK_PART, LOOK_MIN, LOOK_MAX)
  end
  if state == 'unknown' then
    if redis.call('EXISTS', tag .. ':children:' .. identity) == 0 then
      -- Announced for a graph that did not come, or forgotten by all.
      redis.call('SREM', tag .. ':watched', identity)
      return nil
    end
    state = 'lost'
  end
  watch.latch(tag, identity, state, state == 'removed' and 'on BullMQ’s side' or '', now)
  return now
end

local more = 0
for _, member in ipairs(redis.call('ZRANGE', tag .. ':looks', '-inf', now, 'BYSCORE', 'LIMIT', 0, 256)) do
  local bucket = tonumber(member)
  if isOurs(bucket) then
    local key = tag .. ':' .. bucket .. ':parents'
    for _, identity in ipairs(redis.call('ZRANGE', key, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)) do
      if looked >= limit then break end
      looked = looked + 1
      local again = look(bucket, identity)
      if again then redis.call('ZADD', key, math.floor(again), identity) else redis.call('ZREM', key, identity) end
    end
    local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if head[2] then redis.call('ZADD', tag .. ':looks', head[2], member) else redis.call('ZREM', tag .. ':looks', member) end
    if head[2] and tonumber(head[2]) <= now then more = more + 1 end
  end
end
if meta.watched and redis.call('EXISTS', tag .. ':watched') == 0 then redis.call('HDEL', tag .. ':meta', 'watched') end
flushCounts(tag)
flushHeads(tag, now)
local head = redis.call('ZRANGE', tag .. ':looks', 0, 0, 'WITHSCORES')
return { 'OK', now, looked, released, ended, redis.call('SCARD', tag .. ':latch:dependencies'), head[2] or 0, more }
