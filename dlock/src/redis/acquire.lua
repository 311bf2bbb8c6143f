-- Acquires a lease, or recognises one that its owner was granted before.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- fence             granted now; the counter went up by one. A number by itself, not in a table: the usual answer is the one
--                   that costs least to make, to send and to read
-- {1, fence, pttl}  granted before, to the same owner: its answer got lost, the lease lives for pttl ms more. Nothing is
--                   changed: a second increment would make the first token stale, a new TTL would prolong a lease whose
--                   age the caller can't know
-- {0, pttl}         held by another owner for pttl ms more, -1: for ever. Nothing is changed
local call, keys, args = redis.call, KEYS, ARGV
if call('SET', keys[1], args[1], 'NX', 'PX', args[2]) then
  return call('INCR', keys[2])
end
if call('GET', keys[1]) == args[1] then
  return {1, tonumber(call('GET', keys[2])), call('PTTL', keys[1])}
end
return {0, call('PTTL', keys[1])}
