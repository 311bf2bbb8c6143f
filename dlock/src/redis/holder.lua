-- Reads the holder of a lease and its token, which belong together only if they are read in one step.
--
-- KEYS[1]  the owner token, while the lease is held
-- KEYS[2]  the fencing counter, which never expires
--
-- Returns one of:
-- {owner, fence}  The owner, and the text of the counter: the token of its grant.
-- {owner, nil}    The owner of a lease without a token, on a key that never had one.
-- {}              Nobody holds the lease.
local call, keys = redis.call, KEYS
local owner = call('GET', keys[1])
if not owner then return {} end
return {owner, call('GET', keys[2])}
