-- Ended identities (`spent`): >I6 ended at, B how, B requests, requests x 8, [I6 last of a schedule].
-- Two families of alternating hashes: ids that callers chose live for the duplicate window, generated ones only against re-sends.
-- In the first also answers to requests that a record has no place for: ":", request, identity -> answer. No identity begins so.
--- @include "shard"
local ENDED_RUN, ENDED_CANCELLED, ENDED_REPLACED, ENDED_DELETED, ENDED_EXPIRED = 1, 2, 3, 4, 5

local function spentKey(tag, bucket, generation, short)
  return tag .. ':' .. bucket .. (short and ':spent-short:' or ':spent:') .. generation
end

local function packSpent(now, how, requests, last)
  return struct.pack('>I6BB', now, how, #requests / 8) .. requests .. (last and struct.pack('>I6', last) or '')
end

-- Marks that entries exist, so that submit asks for them only then. Returns the generation to write to.
local function spentGeneration(tag, now, short)
  local field = short and 'spentShort' or 'spent'
  if not meta[field] then
    meta[field] = '1'
    redis.call('HSET', tag .. ':meta', field, '1', field .. 'At', string.format('%.0f', now))
  end
  return meta[field]
end

local function writeSpent(tag, bucket, identity, now, how, requests, short, last)
  redis.call('HSET', spentKey(tag, bucket, spentGeneration(tag, now, short), short), identity, packSpent(now, how, requests, last))
end

-- ended at, how, requests, last; or nil. A second end of one identity hides the first.
local function readSpent(tag, bucket, identity, short)
  local generation = meta[short and 'spentShort' or 'spent']
  if not generation then return nil end
  local entry = redis.call('HGET', spentKey(tag, bucket, generation, short), identity)
  if not entry then entry = redis.call('HGET', spentKey(tag, bucket, generation - 1, short), identity) end
  if not entry then return nil end
  local endedAt, how, count, p = struct.unpack('>I6BB', entry)
  local last = nil
  if #entry >= p + count * 8 + 5 then last = struct.unpack('>I6', entry, p + count * 8) end
  return endedAt, how, string.sub(entry, p, p + count * 8 - 1), last
end

local remembered = {}
function remembered.write(tag, bucket, identity, request, answer, now)
  redis.call('HSET', spentKey(tag, bucket, spentGeneration(tag, now, false), false), ':' .. request .. identity, answer)
end

function remembered.read(tag, bucket, identity, request)
  local generation = meta.spent
  if not generation then return nil end
  local field = ':' .. request .. identity
  return redis.call('HGET', spentKey(tag, bucket, generation, false), field)
    or redis.call('HGET', spentKey(tag, bucket, generation - 1, false), field) or nil
end
