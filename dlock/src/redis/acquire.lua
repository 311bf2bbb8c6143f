-- Acquires a lease, or recognises one that was granted to the same owner before.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- Returns one of:
-- fence             Granted now; the counter is incremented. A plain number, not a table: the most frequent
--                   reply is the cheapest to build, to send and to read. From 2^53 on, where numbers of Lua
--                   are not exact, it is the text of the counter.
-- {1, fence, pttl}  Granted before to the same owner, whose reply was lost; the lease has pttl ms left. The
--                   token is the text of the counter.
--                   Nothing is changed: a second increment would make the first token stale, and a new TTL
--                   would prolong a lease whose age the caller can't know.
-- {0, pttl}         Held by another owner for pttl ms more, or for ever if pttl is -1. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
if call('SET', keys[1], args[1], 'NX', 'PX', args[2]) then
  local fence = call('INCR', keys[2])
  if fence < 9007199254740992 then return fence end
  return call('GET', keys[2])
end
if call('GET', keys[1]) == args[1] then
  return {1, call('GET', keys[2]), call('PTTL', keys[1])}
end
return {0, call('PTTL', keys[1])}
