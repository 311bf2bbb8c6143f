-- Acquires a lease as acquire.lua does, with a token that survives the loss of the counter: the server's
-- time, unless the counter is ahead of it.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- Returns one of:
-- fence             Granted now; the counter is set to the larger of counter + 1 and the time in microseconds
--                   since 1970.
-- {1, fence, pttl}  Granted before to the same owner, as in acquire.lua. Nothing is changed.
-- an error          The counter has reached 2^53, beyond which numbers of Lua are not exact. Nothing is
--                   granted.
-- {0, pttl}         Held by another owner for pttl ms more, or for ever if pttl is -1. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('SET', keys[1], args[1], 'NX', 'PX', args[2]) then
  local time = call('TIME')
  local fence = math.max(tonumber(call('GET', keys[2]) or 0) + 1, time[1] * 1000000 + time[2])
  if fence >= 9007199254740992 then
    call('DEL', keys[1])
    return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
  end
  -- tostring would write a number of 16 digits in scientific notation.
  call('SET', keys[2], string.format('%.0f', fence))
  return fence
end
if call('GET', keys[1]) == args[1] then
  return {1, call('GET', keys[2]), call('PTTL', keys[1])}
end
return {0, call('PTTL', keys[1])}
