-- Acquires a reentrant lock, as Redisson's RLock does: a hash with the number of acquires of its holder.
--
-- KEYS: the lock. ARGV: the holder, the TTL in milliseconds.
-- Returns nil, or the time in milliseconds until the lock of another holder ends.
local call, lock, holder = redis.call, KEYS[1], ARGV[1]
if call('EXISTS', lock) == 1 and call('HEXISTS', lock, holder) == 0 then
    return call('PTTL', lock)
end
call('HINCRBY', lock, holder, 1)
call('PEXPIRE', lock, ARGV[2])
return nil
