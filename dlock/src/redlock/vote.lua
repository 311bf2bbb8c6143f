-- Votes for a lease on one node: the first phase of Redlock. The counter stays as it is.
--
-- KEYS[1]  the owner token, while the node's vote is given
-- KEYS[2]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  'time' if tokens must survive the loss of a counter
--
-- Returns one of:
-- lowest             Voted now. `lowest` is the lowest token that may be granted with this vote: counter + 1,
--                    or the node's time in microseconds since 1970 if ARGV[3] is 'time' and that is larger.
-- {1, lowest, pttl}  Voted before for the same owner; the vote has pttl ms left. Nothing is changed.
-- an error           The counter has reached 2^53, beyond which numbers of Lua are not exact. No vote is
--                    given.
-- {0, pttl, owner}   Another owner has the vote for pttl ms more, or for ever if pttl is -1. Nothing is
--                    changed.
local call = redis.call
local given = call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if not given then
  local owner = call('GET', KEYS[1])
  if owner ~= ARGV[1] then
    return {0, call('PTTL', KEYS[1]), owner}
  end
end
local lowest = tonumber(call('GET', KEYS[2]) or 0) + 1
if ARGV[3] == 'time' then
  local time = call('TIME')
  lowest = math.max(lowest, time[1] * 1000000 + time[2])
end
if lowest >= 9007199254740992 then
  if given then call('DEL', KEYS[1]) end
  return redis.error_reply('ERR the fencing counter has reached 2^53: Lua counts exactly only below it')
end
if given then
  return lowest
end
return {1, lowest, call('PTTL', KEYS[1])}
