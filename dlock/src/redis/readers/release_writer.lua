-- Ends the lease of a writer, if its owner still has it, and its wait: readers are no longer barred for it.
--
-- KEYS[1]  the owner token of the writer, while it has its lease
-- KEYS[2]  the writers that wait, by the time until which each bars readers: a sorted set
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  optional: a channel on which to notify waiters
--
-- Returns one of:
-- 1  Ended.
-- 0  The caller had no lease: it had expired before, or never was.
local call, keys, args = redis.call, KEYS, ARGV
local waited = call('ZREM', keys[2], args[1])
local wrote = 0
if call('GET', keys[1]) == args[1] then wrote = call('DEL', keys[1]) end
if args[2] and waited + wrote > 0 then
  -- Waiters also poll, so a user without the right to publish can still release.
  redis.pcall('PUBLISH', args[2], '')
end
return wrote
