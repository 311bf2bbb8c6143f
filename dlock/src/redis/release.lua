-- Ends a lease, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
--
-- 1  deleted
-- 0  expired or another's; nothing is changed
local call = redis.call
if call('GET', KEYS[1]) == ARGV[1] then
  return call('DEL', KEYS[1])
end
return 0
