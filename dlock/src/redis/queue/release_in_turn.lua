-- Ends a lease, if its owner still has it, and the wait of its owner. If the lock is free then, the first
-- waiter is told.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the waiters by their places, lower ones first: a sorted set
-- KEYS[3]  the waiters by the time at which each has to have asked again: a sorted set
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  optional: a channel on which to publish the place of the first waiter
--
-- Returns one of:
-- 1  Ended.
-- 0  The caller had no lease: it had expired before, or never was.
local call, keys, args = redis.call, KEYS, ARGV
local held = 0
if call('GET', keys[1]) == args[1] then held = call('DEL', keys[1]) end
local waited = call('ZREM', keys[2], args[1])
call('ZREM', keys[3], args[1])
if not args[2] or held + waited == 0 or call('GET', keys[1]) then return held end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, owner in ipairs(call('ZRANGEBYSCORE', keys[3], '-inf', now)) do
  call('ZREM', keys[2], owner)
  call('ZREM', keys[3], owner)
end
local first = call('ZRANGE', keys[2], 0, 0, 'WITHSCORES')[2]
-- Waiters also poll, so a user without the right to publish can still release.
if first then redis.pcall('PUBLISH', args[2], first) end
return held
