-- The test kit's clock: milliseconds from a key of the namespace, chosen when scripts are loaded.
local function clockNow()
  return tonumber(redis.call('GET', KEYS[1]:sub(1, -7) .. ':clock')) or error('the virtual clock is not set')
end
