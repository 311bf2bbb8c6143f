-- Raises the fencing counter to a token that is about to be granted: the second phase of Redlock.
--
-- KEYS[1]  the owner token, while the node's vote is given
-- KEYS[2]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the fencing token
--
-- Returns one of:
-- 1  Raised: from now on the node votes only for larger tokens.
-- 0  The vote has ended, or the counter has reached the token already. Nothing is changed.
local call = redis.call
if call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if tonumber(call('GET', KEYS[2]) or 0) >= tonumber(ARGV[2]) then
  return 0
end
call('SET', KEYS[2], ARGV[2])
return 1
