-- Releases an acquire of a writer. The last one leaves the lock to its own readers, or tells all who wait.
--
-- KEYS: the lock. ARGV: the writer, the TTL in milliseconds, the channel.
-- Returns nil if the writer does not hold it, 0 if it holds it still, 1 if it holds it no more.
local call, lock, writer = redis.call, KEYS[1], ARGV[1]
local mode = call('HGET', lock, 'mode')
if not mode then
    call('PUBLISH', ARGV[3], 1)
    return 1
end
if mode ~= 'write' or call('HEXISTS', lock, writer) == 0 then
    return nil
end
if call('HINCRBY', lock, writer, -1) > 0 then
    call('PEXPIRE', lock, ARGV[2])
    return 0
end
call('HDEL', lock, writer)
if call('HLEN', lock) > 1 then
    call('HSET', lock, 'mode', 'read')
    return 1
end
call('DEL', lock)
call('PUBLISH', ARGV[3], 1)
return 1
