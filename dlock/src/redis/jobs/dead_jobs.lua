-- Lists the jobs that are dead, the latest first.
--
-- KEYS[1]  the parts of the jobs, and the counter of claims: a hash
-- KEYS[2]  the dead jobs by the time of their deaths, in milliseconds since 1970: a sorted set
-- ARGV[1]  the most jobs to list
--
-- Returns {id, error, id, error, ...}, texts all.
local call, keys, args = redis.call, KEYS, ARGV
local answer = {}
for _, id in ipairs(call('ZREVRANGE', keys[2], 0, args[1] - 1)) do
  answer[#answer + 1] = id
  answer[#answer + 1] = call('HGET', keys[1], 'e' .. id) or ''
end
return answer
