-- Recent ends that BullMQ does not know, capped by length; the slow sweep caps it by age.
local HISTORY_MAX = 10000

local function writeHistory(tag, now, identity, scheduledFor, what, reason)
  redis.call('XADD', tag .. ':history', 'MAXLEN', '~', HISTORY_MAX, '*', 'at', string.format('%.0f', now), 'job', identity,
    'scheduledFor', string.format('%.0f', scheduledFor), 'what', what, 'reason', reason)
end
