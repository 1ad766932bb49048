-- Request ids (design: every mutating call carries one). A request is 7 bytes of the client's hash and one answer byte.
local ANSWER_ID_IN_USE, ANSWER_OTHER_PARENTS = 0, 7
local ANSWER_CREATED, ANSWER_EXISTING, ANSWER_REPLACED, ANSWER_FIRED, ANSWER_OK, ANSWER_ASKED = 1, 2, 3, 4, 5, 6

-- The answer byte that this request got before, or nil. `requests` is a run of 8-byte entries.
local function answeredBefore(requests, request)
  for p = 1, #requests, 8 do
    if string.sub(requests, p, p + 6) == request then return string.byte(requests, p + 7) end
  end
  return nil
end

-- The newest few, newest first.
local function rememberRequest(requests, request, answer)
  return string.sub(request .. string.char(answer) .. requests, 1, MAX_REQUESTS * 8)
end
