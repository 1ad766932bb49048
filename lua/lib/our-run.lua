-- What stands under a run's id is that run, put there before; anything else is somebody else's job.
local function isOurRun(key, mark)
  local opts = redis.call('TYPE', key).ok == 'hash' and redis.call('HGET', key, 'opts')
  return opts and string.find(opts, '"carillon":"' .. mark .. '"', 1, true)
end
