-- Sets a lease back to its full TTL, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- 1  extended
-- 0  expired or another's; nothing is changed, above all nothing is acquired anew
local call = redis.call
if call('GET', KEYS[1]) == ARGV[1] then
  return call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
