-- Makes a claimed job dead: nobody claims it until it is requeued.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- KEYS[3]  the dead jobs by the time of their deaths, in milliseconds since 1970: a sorted set
-- ARGV[1]  the number of the job
-- ARGV[2]  the claim: its token, a blank, and the owner token
-- ARGV[3]  the error, for operators
--
-- Returns one of:
-- 1  Dead.
-- 0  The claim is over. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('HGET', keys[2], 'c' .. args[1]) ~= args[2] then return 0 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZREM', keys[1], args[1])
call('HDEL', keys[2], 'c' .. args[1])
call('HSET', keys[2], 'e' .. args[1], args[3])
call('ZADD', keys[3], string.format('%.0f', now), args[1])
return 1
