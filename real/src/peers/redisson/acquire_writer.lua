-- Acquires a lock of readers and a writer for writing.
--
-- KEYS: the lock. ARGV: the writer, the TTL in milliseconds.
-- Returns nil, or the time in milliseconds until the lock of others ends.
local call, lock, writer = redis.call, KEYS[1], ARGV[1]
local mode = call('HGET', lock, 'mode')
if not mode then
    call('HSET', lock, 'mode', 'write', writer, 1)
    call('PEXPIRE', lock, ARGV[2])
    return nil
end
if mode == 'write' and call('HEXISTS', lock, writer) == 1 then
    call('HINCRBY', lock, writer, 1)
    call('PEXPIRE', lock, call('PTTL', lock) + ARGV[2])
    return nil
end
return call('PTTL', lock)
