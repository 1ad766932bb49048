-- The deadline of a one-time job stands among its options, in ms; a flag of the record says that there is one. After it
-- a job that is late does not run.
local function deadlineOf(record)
  if record.kind ~= KIND_JOB or not hasFlag(record.flags, FLAG_DEADLINE) then return nil end
  local read, options = pcall(cjson.decode, record.opts)
  local deadline = read and type(options) == 'table' and options.deadline
  return type(deadline) == 'number' and deadline or nil
end

local function isExpired(record, now)
  local deadline = deadlineOf(record)
  return deadline ~= nil and now > deadline
end

-- A scheduled time that leaves no time to run at.
local function isPastDeadline(record)
  local deadline = deadlineOf(record)
  return deadline ~= nil and record.at >= deadline
end
