-- Acquires a lease for writing, or recognises one that was granted to the same owner before. The writer's
-- lease is stored as that of a mutex, and is renewed as that. A writer that has to wait for readers bars new
-- ones for a while; it asks again before that ends.
--
-- KEYS[1]  the owner token of the writer, while it has its lease
-- KEYS[2]  the readers by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[3]  the tokens of the readers by their owners: a hash
-- KEYS[4]  the writers that wait, by the time until which each bars readers: a sorted set
-- KEYS[5]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  the time for which the caller bars readers if it has to wait for some, in milliseconds
-- ARGV[4]  optional: any text; takes the token from the server's time, as acquire_by_time.lua does
--
-- Returns one of:
-- {2, fence}        Granted now. Tokens are texts of the counter.
-- {1, fence, pttl}  Granted before to the same owner, whose reply was lost; the lease has pttl ms left.
--                   Nothing is changed.
-- {0, left}         Another writer has the lock for left ms more, or for ever if left is -1; or readers have
--                   it, the last of them for left ms, and no new one gets it meanwhile.
-- an error          The counter has reached 2^53, beyond which numbers of Lua are not exact. Nothing is
--                   granted.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function bar_readers()
  for _, owner in ipairs(call('ZRANGEBYSCORE', keys[4], '-inf', now)) do
    call('ZREM', keys[4], owner)
  end
  call('ZADD', keys[4], string.format('%.0f', now + args[3]), args[1])
  call('PEXPIREAT', keys[4], call('ZREVRANGE', keys[4], 0, 0, 'WITHSCORES')[2])
end

local function next_token()
  local count = call('GET', keys[5])
  if not args[4] and tonumber(count or 0) < 9007199254740991 then
    return string.format('%.0f', call('INCR', keys[5]))
  end
  local fence = tonumber(count or 0) + 1
  if args[4] then fence = math.max(fence, time[1] * 1000000 + time[2]) end
  if fence >= 9007199254740992 then return nil end
  -- tostring would write a number of 16 digits in scientific notation.
  call('SET', keys[5], string.format('%.0f', fence))
  return string.format('%.0f', fence)
end

local writer = call('GET', keys[1])
if writer == args[1] then
  return {1, call('GET', keys[5]), call('PTTL', keys[1])}
end
if writer then return {0, call('PTTL', keys[1])} end
for _, owner in ipairs(call('ZRANGEBYSCORE', keys[2], '-inf', now)) do
  call('ZREM', keys[2], owner)
  call('HDEL', keys[3], owner)
end
local last = call('ZREVRANGE', keys[2], 0, 0, 'WITHSCORES')[2]
if last then
  bar_readers()
  return {0, last - now}
end
local fence = next_token()
if not fence then
  return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
end
call('SET', keys[1], args[1], 'PX', args[2])
call('ZREM', keys[4], args[1])
return {2, fence}
