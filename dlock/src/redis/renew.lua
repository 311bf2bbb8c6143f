-- Sets a lease back to its full TTL, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- Returns one of:
-- 1  Extended.
-- 0  The lease has expired, or another owner holds it. Nothing is changed: the lease is not acquired again.
local call, keys, args = redis.call, KEYS, ARGV
if call('GET', keys[1]) == args[1] then
  return call('PEXPIRE', keys[1], args[2])
end
return 0
