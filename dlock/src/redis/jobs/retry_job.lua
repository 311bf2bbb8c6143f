-- Gives a claimed job back for another attempt.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- ARGV[1]  the number of the job
-- ARGV[2]  the claim: its token, a blank, and the owner token
-- ARGV[3]  the pause before the next attempt in milliseconds
-- ARGV[4]  the error, for operators
-- ARGV[5]  optional: a token that the resource has seen. The counter was lost, since the claim is below it:
--          raises the counter to it, and does not count the attempt
--
-- Returns one of:
-- 1  Given back.
-- 0  The claim is over. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('HGET', keys[2], 'c' .. args[1]) ~= args[2] then return 0 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if args[5] then
  if tonumber(call('HGET', keys[2], 'token')) < tonumber(args[5]) then
    call('HSET', keys[2], 'token', args[5])
  end
  call('HINCRBY', keys[2], 'a' .. args[1], -1)
end
call('HDEL', keys[2], 'c' .. args[1])
call('HSET', keys[2], 'e' .. args[1], args[4])
call('ZADD', keys[1], string.format('%.0f', now + args[3]), args[1])
return 1
