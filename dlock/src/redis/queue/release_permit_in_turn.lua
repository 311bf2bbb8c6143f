-- Ends the lease of a permit, if its owner still has it, and the wait of its owner. If a permit is free then,
-- the first waiter is told.
--
-- KEYS[1]  the owners by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[2]  the tokens by their owners: a hash
-- KEYS[3]  the waiters by their places, lower ones first: a sorted set
-- KEYS[4]  the waiters by the time at which each has to have asked again: a sorted set
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the number of permits
-- ARGV[3]  optional: a channel on which to publish the place of the first waiter
--
-- Returns one of:
-- 1  Ended.
-- 0  The caller had no lease: it had expired before, or never was.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = call('ZSCORE', keys[1], args[1])
local had = call('ZREM', keys[1], args[1]) + call('HDEL', keys[2], args[1])
had = had + call('ZREM', keys[3], args[1]) + call('ZREM', keys[4], args[1])
local held = over and tonumber(over) > now and 1 or 0
if not args[3] or had == 0 then return held end
for _, owner in ipairs(call('ZRANGEBYSCORE', keys[1], '-inf', now)) do
  call('ZREM', keys[1], owner)
  call('HDEL', keys[2], owner)
end
if call('ZCARD', keys[1]) >= tonumber(args[2]) then return held end
for _, owner in ipairs(call('ZRANGEBYSCORE', keys[4], '-inf', now)) do
  call('ZREM', keys[3], owner)
  call('ZREM', keys[4], owner)
end
local first = call('ZRANGE', keys[3], 0, 0, 'WITHSCORES')[2]
-- Waiters also poll, so a user without the right to publish can still release.
if first then redis.pcall('PUBLISH', args[3], first) end
return held
