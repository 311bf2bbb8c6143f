-- Removes a claimed job: its effect is committed.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- ARGV[1]  the number of the job
-- ARGV[2]  the claim: its token, a blank, and the owner token
--
-- Returns one of:
-- 1  Removed.
-- 0  The claim is over. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('HGET', keys[2], 'c' .. args[1]) ~= args[2] then return 0 end
call('ZREM', keys[1], args[1])
call('HDEL', keys[2], 'p' .. args[1], 'c' .. args[1], 'a' .. args[1], 'e' .. args[1])
return 1
