-- Ends a lease, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  optional: a channel on which to notify waiters
--
-- Returns one of:
-- 1  Deleted.
-- 0  The lease has expired, or another owner holds it. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('GET', keys[1]) == args[1] then
  call('DEL', keys[1])
  if args[2] then
    -- Waiters also poll, so a user without the right to publish can still release.
    redis.pcall('PUBLISH', args[2], '')
  end
  return 1
end
return 0
