-- Extends the lease of a claim: it lasts from now for the given time.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- ARGV[1]  the number of the job
-- ARGV[2]  the claim: its token, a blank, and the owner token
-- ARGV[3]  the lease in milliseconds
--
-- Returns one of:
-- 1  Extended. The lease may have been over, as long as nobody has claimed the job since.
-- 0  The claim is over. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('HGET', keys[2], 'c' .. args[1]) ~= args[2] then return 0 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', keys[1], string.format('%.0f', now + args[3]), args[1])
return 1
