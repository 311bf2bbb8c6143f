-- Ends the lease of a reader, if its owner still has it.
--
-- KEYS[1]  the readers by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[2]  the tokens of the readers by their owners: a hash
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  optional: a channel on which to notify waiters when the last reader has left
--
-- Returns one of:
-- 1  Ended.
-- 0  The lease had expired before.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = call('ZSCORE', keys[1], args[1])
if not over then return 0 end
call('ZREM', keys[1], args[1])
call('HDEL', keys[2], args[1])
-- Only a writer waits for readers, and it waits for all of them.
local last = call('ZREVRANGE', keys[1], 0, 0, 'WITHSCORES')[2]
if args[2] and (not last or tonumber(last) <= now) then
  -- Waiters also poll, so a user without the right to publish can still release.
  redis.pcall('PUBLISH', args[2], '')
end
if tonumber(over) <= now then return 0 end
return 1
