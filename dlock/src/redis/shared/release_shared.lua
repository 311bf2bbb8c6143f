-- Ends a lease whose token comes from a shared counter, if its owner still holds it. The caller need not know
-- the token: an acquire whose answer was lost is released by its owner token.
--
-- KEYS[1]  the owner token, `#` and the fencing token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  optional: a channel on which to notify waiters
--
-- Returns one of:
-- 1  Deleted.
-- 0  The lease has expired, or another owner holds it. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
local stored, head = call('GET', keys[1]), args[1] .. '#'
if not stored or string.sub(stored, 1, #head) ~= head then return 0 end
call('DEL', keys[1])
if args[2] then
  -- Waiters also poll, so a user without the right to publish can still release.
  redis.pcall('PUBLISH', args[2], '')
end
return 1
