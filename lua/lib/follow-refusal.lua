-- Why a schedule cannot follow these: the reply, or nil. Chains are walked as far as they go.
local function followRefusal(tag, identity, parents)
  local todo, seen = {}, {}
  for _, parent in ipairs(parents) do todo[#todo + 1] = parent end
  while #todo > 0 do
    local parent = table.remove(todo)
    if parent == identity then return { 'CYCLE', identity } end
    if not seen[parent] then
      seen[parent] = true
      local text = redis.call('HGET', tag .. ':' .. watch.bucketOf(parent) .. ':jobs', parent)
      local read, record = pcall(decodeRecord, text or '')
      if not read or record.kind ~= KIND_SCHEDULE then return { 'UNKNOWN_PARENT', parent } end
      if record.after then
        for _, one in ipairs((follow.parentsOf(string.match(parent, '^[^:]+'), record.policies))) do todo[#todo + 1] = one end
      end
    end
  end
  return nil
end
