-- Request ids (design: every mutating call carries one). A request is 7 bytes of the client's hash, which holds the
-- operation too, and one answer byte. The top bit tells a request that a caller named from one that the client made up
-- for its own re-sends.
--- @include "spent"
local ANSWER_ID_IN_USE, ANSWER_OTHER_PARENTS = 0, 7
local ANSWER_CREATED, ANSWER_EXISTING, ANSWER_REPLACED, ANSWER_FIRED, ANSWER_OK, ANSWER_ASKED = 1, 2, 3, 4, 5, 6
-- In a block: a Lua function may have 200 locals.
local answeredBefore, rememberRequest
do
  local NAMED = 128

  -- The answer byte that this request about this identity got before, or nil. `requests` is a run of 8-byte entries.
  function answeredBefore(tag, bucket, identity, requests, request)
    for p = 1, #requests, 8 do
      if string.sub(requests, p, p + 6) == request then return string.byte(requests, p + 7) end
    end
    return string.byte(request) >= NAMED and tonumber(remembered.read(tag, bucket, identity, request)) or nil
  end

  -- For who has no list of them: only what a caller named.
  function remembered.named(tag, bucket, identity, request, answer, now)
    if string.byte(request) >= NAMED then remembered.write(tag, bucket, identity, request, answer, now) end
  end

  -- The newest few, newest first. One that a caller named and that has no place among them any more is kept in `spent`.
  function rememberRequest(tag, bucket, identity, requests, request, answer, now)
    local all = request .. string.char(answer) .. requests
    for p = MAX_REQUESTS * 8 + 1, #all, 8 do
      remembered.named(tag, bucket, identity, string.sub(all, p, p + 6), string.byte(all, p + 7), now)
    end
    return string.sub(all, 1, MAX_REQUESTS * 8)
  end
end
