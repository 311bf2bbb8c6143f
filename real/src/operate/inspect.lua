-- Reads a lock, both keys at one moment. A script needs no right that the user of the locks does not have.
--
-- KEYS[1]  the lease
-- KEYS[2]  the fencing counter of the lock's own
-- KEYS[3]  the counter that it shares with other keys, if it has none of its own
--
-- Returns {owner, left, counter, left}: each text is nil if the key does not exist, each time that is left is
-- in milliseconds, negative for a key that never ends or does not exist.
local counter = redis.call('GET', KEYS[2]) and KEYS[2] or KEYS[3]
return {
  redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]),
  redis.call('GET', counter), redis.call('PTTL', counter),
}
