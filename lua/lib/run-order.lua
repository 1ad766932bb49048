-- What a person asked of a run that a worker has: kept in its hash until the run's end obeys it. One order stands at a
-- time: the newest, but that nothing takes the place of a cancel.

-- The starts that an order may know of. A worker that has fetched the run and not claimed it yet finds what is asked now as
-- if it had been asked before.
local function startsOf(key)
  local starts = tonumber(redis.call('HGET', key, 'ats')) or 0
  local lock = redis.call('GET', key .. ':lock')
  return lock and redis.call('HGET', key, 'carillon:lock') ~= lock and starts - 1 or starts
end

-- The order that stands, or nil; then its text, or that of one that stands no more. BullMQ counts the starts from one again when a run that had ended is sent anew: nobody
-- asked about that one.
local function orderOf(key)
  local text = redis.call('HGET', key, 'carillon:asked')
  if not text then return nil end
  local read, order = pcall(cjson.decode, text)
  local stands = read and type(order) == 'table' and (tonumber(order.started) or 0) <= startsOf(key)
  return stands and order or nil, text
end
