-- Takes a permit, as Redisson's RPermitExpirableSemaphore does: a count of those that are free, beside a set
-- of those that are taken, by their ends on the clocks of the clients.
--
-- KEYS: the count, the set. ARGV: the permit, its end, the time now, the channel.
-- Returns OK, or the next end of a permit if all are taken.
local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3], 'LIMIT', 0, 1)
if #over > 0 then
    redis.call('ZREM', KEYS[2], unpack(over))
    redis.call('PUBLISH', ARGV[4], redis.call('INCRBY', KEYS[1], #over))
end
if tonumber(redis.call('GET', KEYS[1]) or 0) < 1 then
    return redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
end
redis.call('DECRBY', KEYS[1], 1)
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then
    redis.call('PEXPIRE', KEYS[2], left)
end
return 'OK'
