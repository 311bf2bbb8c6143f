-- Stores a job, unless the queue has one of that number.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- KEYS[3]  the dead jobs by the time of their deaths: a sorted set
-- ARGV[1]  the number of the job
-- ARGV[2]  the payload
-- ARGV[3]  the delay in milliseconds
--
-- Returns one of:
-- 1  Stored, or stored before by a request whose reply was lost.
-- 0  The job is dead. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('ZSCORE', keys[3], args[1]) then return 0 end
if call('ZSCORE', keys[1], args[1]) then return 1 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('HSET', keys[2], 'p' .. args[1], args[2])
call('ZADD', keys[1], string.format('%.0f', now + args[3]), args[1])
return 1
