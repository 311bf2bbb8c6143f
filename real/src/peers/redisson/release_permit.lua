-- Gives a permit back, and tells those who wait. KEYS: the count, the set. ARGV: the permit, the time now,
-- the channel. Returns 1 if the permit was still valid.
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if redis.call('ZREM', KEYS[2], ARGV[1]) ~= 1 then
    return 0
end
redis.call('PUBLISH', ARGV[3], redis.call('INCRBY', KEYS[1], 1))
return tonumber(ends) > tonumber(ARGV[2]) and 1 or 0
