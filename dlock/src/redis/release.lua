-- Ends a lease, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  a channel on which those who wait are told, if they are to be
--
-- 1  deleted
-- 0  expired or another's; nothing is changed
local call, keys, args = redis.call, KEYS, ARGV
if call('GET', keys[1]) == args[1] then
  call('DEL', keys[1])
  if args[2] then
    -- A hint: a user who may not publish releases all the same.
    redis.pcall('PUBLISH', args[2], '')
  end
  return 1
end
return 0
