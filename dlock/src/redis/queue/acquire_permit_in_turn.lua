-- Acquires one of several permits in the order of the requests, or recognises one that was granted to the
-- same owner before. Those who have to wait form a queue, as in acquire_in_turn.lua: each must ask again
-- before its patience is over, or it is dead, and removed by the next script of another owner. All times are
-- the server's.
--
-- KEYS[1]  the owners by the end of their leases, in milliseconds since 1970: a sorted set
-- KEYS[2]  the tokens by their owners: a hash
-- KEYS[3]  the waiters by their places, lower ones first: a sorted set
-- KEYS[4]  the waiters by the time at which each has to have asked again: a sorted set
-- KEYS[5]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  the number of permits
-- ARGV[4]  the most owners that may wait, the caller included: 0 if it does not wait
-- ARGV[5]  the time for which the caller keeps its place without asking, in milliseconds
-- ARGV[6]  a channel on which to wake the first waiter if a permit is free for it; an empty text is none
-- ARGV[7]  optional: any text; takes the token from the server's time, as acquire_by_time.lua does
--
-- Returns one of:
-- {2, fence, other...}        Granted now, beside the permits with the other tokens. Tokens are texts.
-- {1, fence, left, other...}  Granted before to the same owner, whose reply was lost; the lease has left ms
--                             left, now beside the permits with the other tokens. Nothing is changed.
-- {0, left, place}            The caller waits at this place. If it is the first, the first lease to end has
--                             left ms left; otherwise left is -1.
-- {3, waiting}                The queue is full: this number of owners wait. Nothing is stored for the
--                             caller.
-- an error                    The counter has reached 2^53, beyond which numbers of Lua are not exact.
--                             Nothing is granted.
local call, keys, args = redis.call, KEYS, ARGV
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function leave(owner)
  call('ZREM', keys[3], owner)
  call('ZREM', keys[4], owner)
end

local function with_others(answer)
  local all = call('HGETALL', keys[2])
  for i = 1, #all, 2 do
    if all[i] ~= args[1] then answer[#answer + 1] = all[i + 1] end
  end
  return answer
end

-- Two keys live as long as the last score of one of them.
local function keep(first, second, scores)
  local last = call('ZREVRANGE', scores, 0, 0, 'WITHSCORES')[2]
  call('PEXPIREAT', first, last)
  call('PEXPIREAT', second, last)
end

local function next_token()
  local count = call('GET', keys[5])
  if not args[7] and tonumber(count or 0) < 9007199254740991 then
    return string.format('%.0f', call('INCR', keys[5]))
  end
  local fence = tonumber(count or 0) + 1
  if args[7] then fence = math.max(fence, time[1] * 1000000 + time[2]) end
  if fence >= 9007199254740992 then return nil end
  -- tostring would write a number of 16 digits in scientific notation.
  call('SET', keys[5], string.format('%.0f', fence))
  return string.format('%.0f', fence)
end

-- Wakes the first waiter if one of the permits is free for it. Waiters also poll, so a user without the right
-- to publish can still wait.
local function wake_first(free)
  if free < 1 or args[6] == '' then return end
  local first = call('ZRANGE', keys[3], 0, 0, 'WITHSCORES')[2]
  if first then redis.pcall('PUBLISH', args[6], first) end
end

for _, owner in ipairs(call('ZRANGEBYSCORE', keys[1], '-inf', now)) do
  call('ZREM', keys[1], owner)
  call('HDEL', keys[2], owner)
end
local over = call('ZSCORE', keys[1], args[1])
if over then
  return with_others({1, call('HGET', keys[2], args[1]), over - now})
end
local dead = 0
for _, owner in ipairs(call('ZRANGEBYSCORE', keys[4], '-inf', now)) do
  -- A caller that comes late is alive.
  if owner ~= args[1] then
    leave(owner)
    dead = dead + 1
  end
end
local free = args[3] - call('ZCARD', keys[1])
local place = call('ZSCORE', keys[3], args[1])
local waiting = call('ZCARD', keys[3])

-- Returns whether the caller is among this number of the first.
local function is_among(number)
  if not place then return waiting < number end
  if number < 1 then return false end
  for _, owner in ipairs(call('ZRANGE', keys[3], 0, number - 1)) do
    if owner == args[1] then return true end
  end
  return false
end

local is_first = is_among(1)
if is_among(free) then
  local fence = next_token()
  if not fence then
    return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
  end
  call('ZADD', keys[1], string.format('%.0f', now + args[2]), args[1])
  call('HSET', keys[2], args[1], fence)
  keep(keys[1], keys[2], keys[1])
  if place then leave(args[1]) end
  -- Several permits may have become free at once, and a release wakes the first waiter alone.
  wake_first(free - 1)
  return with_others({2, fence})
end
if not place then
  if waiting >= tonumber(args[4]) then
    if dead > 0 then wake_first(free) end
    return {3, waiting}
  end
  -- Above all places in the queue. An empty one begins with the number of the last grant, in the range that
  -- Lua counts exactly.
  local last = call('ZREVRANGE', keys[3], 0, 0, 'WITHSCORES')[2] or (call('GET', keys[5]) or 0) % 2 ^ 52
  place = string.format('%.0f', last + 1)
  call('ZADD', keys[3], place, args[1])
end
call('ZADD', keys[4], string.format('%.0f', now + args[5]), args[1])
keep(keys[3], keys[4], keys[4])
if is_first then
  return {0, call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')[2] - now, tonumber(place)}
end
if dead > 0 then wake_first(free) end
return {0, -1, tonumber(place)}
