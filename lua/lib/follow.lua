-- Schedules that follow others: their tick waits for the run of the same scheduled time. Which ones stands in the policies, and a
-- bit of the header says that there are any; T:followers:<identity> is the way back. All runs of a followed schedule are
-- hung on the latch, see watch.lua.
--- @include "watch"
local follow = {}
do
  -- The identities that a schedule follows, and its definition.
  function follow.parentsOf(queueName, policies)
    local read, definition = pcall(cjson.decode, policies)
    if not read or type(definition) ~= 'table' then return {}, {} end
    local parents = {}
    for i, one in ipairs(definition.after or {}) do
      parents[i] = type(one) == 'table' and one.queue .. ':' .. one.scheduleId or queueName .. ':' .. tostring(one)
    end
    return parents, definition
  end

  function follow.begin(tag, identity, parents)
    for _, parent in ipairs(parents) do
      redis.call('SADD', tag .. ':followers:' .. parent, identity)
      redis.call('SADD', tag .. ':watched', parent)
      redis.call('HSET', tag .. ':meta', 'watched', '1')
    end
  end

  function follow.finish(tag, identity, parents)
    for _, parent in ipairs(parents) do
      redis.call('SREM', tag .. ':followers:' .. parent, identity)
      if redis.call('EXISTS', tag .. ':followers:' .. parent) == 0 then redis.call('SREM', tag .. ':watched', parent) end
    end
  end
end
