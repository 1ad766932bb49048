-- The buckets that the caller leads: ">B first, B last, I6 served from, I2 fence length, fence" a range.
local ownedRanges = {}
local rangeOfBucket = {}
local fencedBuckets, lowerBuckets = {}, {}
local fenceKnown = {}

local function readOwned(text)
  local p = 1
  while p <= #text do
    local range = {}
    local length
    range.first, range.last, range.servedFrom, length, p = struct.unpack('>BBI6I2', text, p)
    range.fence = string.sub(text, p, p + length - 1)
    p = p + length
    ownedRanges[#ownedRanges + 1] = range
    for bucket = range.first, range.last do rangeOfBucket[bucket] = range end
  end
end

local function ownedRange(bucket)
  return rangeOfBucket[bucket]
end

-- A higher fence ends the caller's term; a lower one lost its raise to a failover and may be raised again.
local function judgeFence(range, bucket, stored)
  local holds = fenceHolds(stored, range.fence)
  if not holds then
    local list = fenceBelow(stored, range.fence) and lowerBuckets or fencedBuckets
    list[#list + 1] = bucket
  end
  fenceKnown[bucket] = holds
  return holds
end

local function holdsFence(tag, range, bucket)
  if fenceKnown[bucket] ~= nil then return fenceKnown[bucket] end
  return judgeFence(range, bucket, redis.call('HGET', tag .. ':fence', bucket))
end

-- One read proves every owned bucket; leaders feed their lease with it.
local function proveFences(tag)
  for _, range in ipairs(ownedRanges) do
    local fields = {}
    for bucket = range.first, range.last do fields[#fields + 1] = bucket end
    local stored = redis.call('HMGET', tag .. ':fence', unpack(fields))
    for i, bucket in ipairs(fields) do judgeFence(range, bucket, stored[i]) end
  end
end

-- The earliest head of an owned bucket that is still to come, in ms; 0 when none is near. Where others lead most
-- buckets, most heads are theirs.
local function nextOwnedHead(tag, now)
  local from, page = 0, 64
  while true do
    local list = redis.call('ZRANGE', tag .. ':heads', '(' .. now, '+inf', 'BYSCORE', 'LIMIT', from, page, 'WITHSCORES')
    for i = 1, #list, 2 do
      local bucket = tonumber((string.gsub(list[i], '^p', '')))
      if bucket and ownedRange(bucket) and fenceKnown[bucket] ~= false then return math.floor(tonumber(list[i + 1])) end
    end
    if #list < 2 * page then return 0 end
    from = from + page
  end
end
