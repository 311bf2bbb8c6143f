-- Acquires a lease for reading, or recognises one that was granted to the same owner before. Readers live by
-- the server's clock. A writer that waits bars new readers, so that it is served however many come.
--
-- KEYS[1]  the owner token of the writer, while it has its lease
-- KEYS[2]  the readers by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[3]  the tokens of the readers by their owners: a hash
-- KEYS[4]  the writers that wait, by the time until which each bars readers: a sorted set
-- KEYS[5]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  optional: any text; takes the token from the server's time, as acquire_by_time.lua does
--
-- Returns one of:
-- {2, fence, other...}        Granted now, beside the readers with the other tokens. Tokens are texts.
-- {1, fence, left, other...}  Granted before to the same owner, whose reply was lost; the lease has left ms
--                             left, now beside the readers with the other tokens. Nothing is changed.
-- {0, left}                   A writer has the lock for left ms more, or for ever if left is -1; or one waits
--                             for it, and bars readers for left ms. Nothing is changed.
-- an error                    The counter has reached 2^53, beyond which numbers of Lua are not exact.
--                             Nothing is granted.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Both keys live as long as the last lease.
local function keep()
  local last = call('ZREVRANGE', keys[2], 0, 0, 'WITHSCORES')[2]
  call('PEXPIREAT', keys[2], last)
  call('PEXPIREAT', keys[3], last)
end

local function with_others(answer)
  local all = call('HGETALL', keys[3])
  for i = 1, #all, 2 do
    if all[i] ~= args[1] then answer[#answer + 1] = all[i + 1] end
  end
  return answer
end

local function next_token()
  local count = call('GET', keys[5])
  if not args[3] and tonumber(count or 0) < 9007199254740991 then
    return string.format('%.0f', call('INCR', keys[5]))
  end
  local fence = tonumber(count or 0) + 1
  if args[3] then fence = math.max(fence, time[1] * 1000000 + time[2]) end
  if fence >= 9007199254740992 then return nil end
  -- tostring would write a number of 16 digits in scientific notation.
  call('SET', keys[5], string.format('%.0f', fence))
  return string.format('%.0f', fence)
end

for _, owner in ipairs(call('ZRANGEBYSCORE', keys[2], '-inf', now)) do
  call('ZREM', keys[2], owner)
  call('HDEL', keys[3], owner)
end
local over = call('ZSCORE', keys[2], args[1])
if over then
  return with_others({1, call('HGET', keys[3], args[1]), over - now})
end
local writing = call('PTTL', keys[1])
if writing ~= -2 then return {0, writing} end
local barred = call('ZREVRANGE', keys[4], 0, 0, 'WITHSCORES')[2]
if barred and tonumber(barred) > now then return {0, barred - now} end
local fence = next_token()
if not fence then
  return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
end
call('ZADD', keys[2], string.format('%.0f', now + args[2]), args[1])
call('HSET', keys[3], args[1], fence)
keep()
return with_others({2, fence})
