-- Acquires one of several permits, or recognises one that was granted to the same owner before. A permit
-- lives by the server's clock, so that the clocks of clients don't matter.
--
-- KEYS[1]  the owners by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[2]  the tokens by their owners: a hash
-- KEYS[3]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  the number of permits
-- ARGV[4]  optional: any text; takes the token from the server's time, as acquire_by_time.lua does
--
-- Returns one of:
-- {2, fence, other...}        Granted now, beside the permits with the other tokens. Tokens are texts.
-- {1, fence, left, other...}  Granted before to the same owner, whose reply was lost; the lease has left ms
--                             left, now beside the permits with the other tokens. Nothing is changed.
-- {0, left}                   All permits are taken; the first lease to end has left ms left.
-- an error                    The counter has reached 2^53, beyond which numbers of Lua are not exact.
--                             Nothing is granted.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function with_others(answer)
  local all = call('HGETALL', keys[2])
  for i = 1, #all, 2 do
    if all[i] ~= args[1] then answer[#answer + 1] = all[i + 1] end
  end
  return answer
end

local function next_token()
  local count = call('GET', keys[3])
  if not args[4] and tonumber(count or 0) < 9007199254740991 then
    return string.format('%.0f', call('INCR', keys[3]))
  end
  local fence = tonumber(count or 0) + 1
  if args[4] then fence = math.max(fence, time[1] * 1000000 + time[2]) end
  if fence >= 9007199254740992 then return nil end
  -- tostring would write a number of 16 digits in scientific notation.
  call('SET', keys[3], string.format('%.0f', fence))
  return string.format('%.0f', fence)
end

-- Where no permit is granted, as often, the rest of the two keys need not be read.
local others = call('ZCARD', keys[1])
if others > 0 then
  for _, owner in ipairs(call('ZRANGEBYSCORE', keys[1], '-inf', now)) do
    call('ZREM', keys[1], owner)
    call('HDEL', keys[2], owner)
    others = others - 1
  end
  local over = call('ZSCORE', keys[1], args[1])
  if over then
    return with_others({1, call('HGET', keys[2], args[1]), over - now})
  end
  if others >= tonumber(args[3]) then
    return {0, call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')[2] - now}
  end
end
local fence = next_token()
if not fence then
  return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
end
local last = string.format('%.0f', now + args[2])
call('ZADD', keys[1], last, args[1])
call('HSET', keys[2], args[1], fence)
if others > 0 then last = call('ZREVRANGE', keys[1], 0, 0, 'WITHSCORES')[2] end
-- Both keys live as long as the last lease.
call('PEXPIREAT', keys[1], last)
call('PEXPIREAT', keys[2], last)
return others > 0 and with_others({2, fence}) or {2, fence}
