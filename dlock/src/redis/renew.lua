-- Sets a lease back to its full TTL, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- 1  extended
-- 0  expired or another's; nothing is changed, above all nothing is acquired anew
local call, keys, args = redis.call, KEYS, ARGV
if call('GET', keys[1]) == args[1] then
  return call('PEXPIRE', keys[1], args[2])
end
return 0
