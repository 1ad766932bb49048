-- I5: a leader's script may touch a bucket only while the bucket's fence is exactly the caller's.
-- A fence text is "<epoch number>|<epoch id>|<token>|<holder>".
local function fenceHolds(stored, mine)
  return stored == mine
end
