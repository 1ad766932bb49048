-- Indexes and counts that change with a record. All are collected in a call and written once.
local headsLowered = {}
local countSteps = {}
-- A head beyond this is found by the leader's slow re-read of all heads.
local HEAD_HORIZON = 120000
-- A submit that is due within the longest poll interval wakes the leader; later ones are met by the poll.
local WAKE_WITHIN = 10500

local function lowerHead(member, fireAt)
  local known = headsLowered[member]
  if not known or fireAt < known then headsLowered[member] = fireAt end
end

local function countState(queue, state, step)
  local field = queue .. ':' .. state
  countSteps[field] = (countSteps[field] or 0) + step
end

local function flushCounts(tag)
  for field, step in pairs(countSteps) do
    if step ~= 0 then redis.call('HINCRBY', tag .. ':queues', field, step) end
  end
  countSteps = {}
end

-- Lowers the heads of the buckets that got a nearer job, and wakes their leader if it is due within its poll.
local function flushHeads(tag, now)
  local args, nearest = {}, nil
  for member, fireAt in pairs(headsLowered) do
    if fireAt - now < HEAD_HORIZON then
      args[#args + 1] = fireAt
      args[#args + 1] = member
      if not nearest or fireAt < nearest then nearest = fireAt end
    end
  end
  headsLowered = {}
  if #args == 0 then return end
  local changed = redis.call('ZADD', tag .. ':heads', 'LT', 'CH', unpack(args))
  if changed > 0 and nearest - now <= WAKE_WITHIN then
    redis.call('PUBLISH', tag .. ':wake', string.format('%.0f', nearest))
  end
end
