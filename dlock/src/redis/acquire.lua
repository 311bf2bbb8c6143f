-- Acquires a lease, or recognises one that its owner was granted before.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- {1, fence}        granted now; the counter went up by one
-- {1, fence, pttl}  granted before, to the same owner: its answer got lost, the lease lives for pttl ms more. Nothing is
--                   changed: a second increment would make the first token stale, a new TTL would prolong a lease whose
--                   age the caller can't know
-- {0, pttl}         held by another owner for pttl ms more, -1: for ever. Nothing is changed
local call = redis.call
if call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {1, call('INCR', KEYS[2])}
end
if call('GET', KEYS[1]) == ARGV[1] then
  return {1, tonumber(call('GET', KEYS[2])), call('PTTL', KEYS[1])}
end
return {0, call('PTTL', KEYS[1])}
