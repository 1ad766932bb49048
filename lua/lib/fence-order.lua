-- Orders two fence texts by (epoch number, token); a missing fence is below all others.
local function fenceParts(fence)
  if not fence then return -1, -1, '' end
  local number, epoch, token = string.match(fence, '^(%d+)|([^|]*)|(%d+)|')
  return tonumber(number) or -1, tonumber(token) or -1, epoch or ''
end

local function fenceBelow(left, right)
  local leftNumber, leftToken = fenceParts(left)
  local rightNumber, rightToken = fenceParts(right)
  if leftNumber ~= rightNumber then return leftNumber < rightNumber end
  return leftToken < rightToken
end
