-- The one clock (I6): server TIME in whole milliseconds.
local function clockNow()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
