-- Claims the job whose time comes first, if it has come, and keeps other workers away for the lease. Leases
-- live by the server's clock, so that the clocks of workers don't matter.
--
-- KEYS[1]  the jobs by the time from which they may be claimed, in milliseconds since 1970: a sorted set
-- KEYS[2]  the parts of the jobs, and the counter of claims: a hash
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL of the lease in milliseconds
--
-- Returns one of:
-- {1, id, token, attempts, payload}  Claimed. Id and token are texts.
-- {1, id, token, attempts, nil}      Claimed, and the payload is gone: somebody has deleted or evicted keys.
-- {0, left}                          None is ready; the next one is in left ms.
-- {0}                                The queue is empty, but for dead jobs.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')
local id = first[1]
if not id then return {0} end
if tonumber(first[2]) > now then return {0, first[2] - now} end
call('HINCRBY', keys[2], 'token', 1)
-- As text: numbers of Lua are exact only below 2^53.
local token = call('HGET', keys[2], 'token')
call('HSET', keys[2], 'c' .. id, token .. ' ' .. args[1])
call('ZADD', keys[1], string.format('%.0f', now + args[2]), id)
return {1, id, token, call('HINCRBY', keys[2], 'a' .. id, 1), call('HGET', keys[2], 'p' .. id)}
