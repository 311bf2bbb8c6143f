-- Makes a dead job ready again, with all its attempts.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- KEYS[3]  the dead jobs by the time of their deaths, in milliseconds since 1970: a sorted set
-- ARGV[1]  the number of the job
--
-- Returns one of:
-- 1  Ready.
-- 0  The queue has no dead job of that number. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('ZREM', keys[3], args[1]) == 0 then return 0 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('HDEL', keys[2], 'a' .. args[1], 'e' .. args[1])
call('ZADD', keys[1], string.format('%.0f', now), args[1])
return 1
