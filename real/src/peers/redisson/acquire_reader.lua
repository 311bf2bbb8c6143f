-- Acquires a lock of readers and a writer for reading, as Redisson's RReadWriteLock does: a hash with the
-- mode, and for each holder the number of its acquires; beside it a key for each acquire of a reader, which
-- has the TTL of its lease.
--
-- KEYS: the lock, the prefix of the reader's leases. ARGV: the reader, the same client as a writer, the TTL
-- in milliseconds.
-- Returns nil, or the time in milliseconds until the lock of a writer ends.
local call, lock = redis.call, KEYS[1]
local mode = call('HGET', lock, 'mode')
if mode == 'write' and call('HEXISTS', lock, ARGV[2]) == 0 then
    return call('PTTL', lock)
end
if not mode then
    call('HSET', lock, 'mode', 'read')
end
local count = call('HINCRBY', lock, ARGV[1], 1)
call('SET', KEYS[2] .. ':' .. count, 1, 'PX', ARGV[3])
call('PEXPIRE', lock, math.max(call('PTTL', lock), ARGV[3]))
return nil
