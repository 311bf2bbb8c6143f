-- Releases one acquire of a reentrant lock; the last one tells those who wait.
--
-- KEYS: the lock. ARGV: the holder, the TTL in milliseconds, the channel.
-- Returns nil if the holder does not hold it, 0 if it holds it still, 1 if the lock is free.
local call, lock, holder = redis.call, KEYS[1], ARGV[1]
if call('HEXISTS', lock, holder) == 0 then
    return nil
end
if call('HINCRBY', lock, holder, -1) > 0 then
    call('PEXPIRE', lock, ARGV[2])
    return 0
end
call('DEL', lock)
call('PUBLISH', ARGV[3], 0)
return 1
