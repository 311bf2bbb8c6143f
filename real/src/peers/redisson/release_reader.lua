-- Releases an acquire of a reader. The lock then lasts as long as the longest lease of the other readers; the
-- last one tells one of those who wait.
--
-- KEYS: the lock, the prefix of the reader's leases. ARGV: the reader, the channel.
-- Returns nil if the reader does not hold it, 0 if others hold it still, 1 if the lock is free.
local call, lock, reader = redis.call, KEYS[1], ARGV[1]
local mode = call('HGET', lock, 'mode')
if not mode then
    call('PUBLISH', ARGV[2], 0)
    return 1
end
if call('HEXISTS', lock, reader) == 0 then
    return nil
end
local left = call('HINCRBY', lock, reader, -1)
if left == 0 then
    call('HDEL', lock, reader)
end
call('DEL', KEYS[2] .. ':' .. (left + 1))
if call('HLEN', lock) > 1 then
    local longest = 0
    for _, holder in ipairs(call('HKEYS', lock)) do
        -- The mode is in the hash too, and is not a number.
        for number = tonumber(call('HGET', lock, holder)) or 0, 1, -1 do
            local lease = lock .. ':' .. holder .. ':rwlock_timeout:' .. number
            longest = math.max(longest, call('PTTL', lease))
        end
    end
    if longest > 0 then
        call('PEXPIRE', lock, longest)
        return 0
    end
    if mode == 'write' then
        return 0
    end
end
call('DEL', lock)
call('PUBLISH', ARGV[2], 0)
return 1
