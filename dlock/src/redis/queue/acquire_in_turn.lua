-- Acquires a lease in the order of the requests, or recognises one that was granted to the same owner before.
-- Those who have to wait form a queue, which the server keeps: each must ask again before its patience is
-- over, or it is dead, and removed by the next script of another owner. All times are the server's.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the waiters by their places, lower ones first: a sorted set
-- KEYS[3]  the waiters by the time at which each has to have asked again: a sorted set
-- KEYS[4]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  the most owners that may wait, the caller included: 0 if it does not wait
-- ARGV[4]  the time for which the caller keeps its place without asking, in milliseconds
-- ARGV[5]  a channel on which to wake the first waiter if dead ones were before it; an empty text is none
-- ARGV[6]  optional: any text; takes the token from the server's time, as acquire_by_time.lua does
--
-- Returns one of:
-- {2, fence}        Granted now: the lock was free, and the caller the first. Tokens are texts of the counter.
-- {1, fence, pttl}  Granted before to the same owner, whose reply was lost; the lease has pttl ms left.
--                   Nothing is changed.
-- {0, left, place}  The caller waits at this place. If it is the first, the lease of the holder has left ms
--                   left; otherwise left is -1.
-- {3, waiting}      The queue is full: this number of owners wait. Nothing is stored for the caller.
-- an error          The counter has reached 2^53 with tokens from the time: numbers of Lua are not exact
--                   beyond it. Nothing is granted.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function leave(owner)
  call('ZREM', keys[2], owner)
  call('ZREM', keys[3], owner)
end

local function next_token()
  if not args[6] then
    call('INCR', keys[4])
    return call('GET', keys[4])
  end
  local fence = math.max((call('GET', keys[4]) or 0) + 1, time[1] * 1000000 + time[2])
  if fence >= 2 ^ 53 then return nil end
  -- tostring would write a number of 16 digits in scientific notation.
  call('SET', keys[4], string.format('%.0f', fence))
  return string.format('%.0f', fence)
end

local holder = call('GET', keys[1])
local dead = 0

-- Wakes the first waiter if it may have the lock now. Waiters also poll, so a user without the right to publish
-- can still wait.
local function wake_first()
  if dead > 0 and not holder and args[5] ~= '' then
    redis.pcall('PUBLISH', args[5], call('ZRANGE', keys[2], 0, 0, 'WITHSCORES')[2])
  end
end

if holder == args[1] then
  return {1, call('GET', keys[4]), call('PTTL', keys[1])}
end
for _, owner in ipairs(call('ZRANGEBYSCORE', keys[3], '-inf', now)) do
  -- A caller that comes late is alive.
  if owner ~= args[1] then
    leave(owner)
    dead = dead + 1
  end
end
local place = call('ZSCORE', keys[2], args[1])
local waiting = call('ZCARD', keys[2])
local is_first = waiting == 0 or call('ZRANGE', keys[2], 0, 0)[1] == args[1]
if not holder and is_first then
  local fence = next_token()
  if not fence then
    return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
  end
  call('SET', keys[1], args[1], 'PX', args[2])
  if place then leave(args[1]) end
  return {2, fence}
end
if not place then
  if waiting >= tonumber(args[3]) then
    wake_first()
    return {3, waiting}
  end
  -- Above all places in the queue. An empty one begins with the number of the last grant, in the range that
  -- Lua counts exactly.
  local last = call('ZREVRANGE', keys[2], 0, 0, 'WITHSCORES')[2] or (call('GET', keys[4]) or 0) % 2 ^ 52
  place = string.format('%.0f', last + 1)
  call('ZADD', keys[2], place, args[1])
end
call('ZADD', keys[3], string.format('%.0f', now + args[4]), args[1])
-- Both keys live as long as the last waiter's patience.
local over = call('ZREVRANGE', keys[3], 0, 0, 'WITHSCORES')[2]
call('PEXPIREAT', keys[2], over)
call('PEXPIREAT', keys[3], over)
if is_first then return {0, call('PTTL', keys[1]), tonumber(place)} end
wake_first()
return {0, -1, tonumber(place)}
