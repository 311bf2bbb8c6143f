-- Sets the lease of a reader back to its full TTL, if its owner still has it.
--
-- KEYS[1]  the readers by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[2]  the tokens of the readers by their owners: a hash
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- Returns one of:
-- 1  Extended.
-- 0  The lease has expired. Nothing is changed: it is not acquired again.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = call('ZSCORE', keys[1], args[1])
if not over or tonumber(over) <= now then return 0 end
call('ZADD', keys[1], string.format('%.0f', now + args[2]), args[1])
local last = call('ZREVRANGE', keys[1], 0, 0, 'WITHSCORES')[2]
call('PEXPIREAT', keys[1], last)
call('PEXPIREAT', keys[2], last)
return 1
