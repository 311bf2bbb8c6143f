-- Raises the fencing counter of a lock, unless it is at least as high already.
--
-- KEYS[1]  the fencing counter, which never expires
-- ARGV[1]  the number to raise it to, in decimal digits without leading zeros
--
-- Returns one of:
-- {1, before}  Raised, and without a TTL. `before` is the text of the counter before, nil if there was none.
-- {0, before}  It is at least as high. Nothing is changed.
-- an error     The key holds no number. Nothing is changed.
--
-- Numbers are compared as texts, the longer one first: numbers of Lua are not exact from 2^53 on.
local before, to = redis.call('GET', KEYS[1]), ARGV[1]
if before then
  if not string.find(before, '^%d+$') then
    return redis.error_reply('ERR the fencing counter is no number: delete it by hand, and raise it again')
  end
  if #before > #to or (#before == #to and before >= to) then
    return {0, before}
  end
end
redis.call('SET', KEYS[1], to)
return {1, before}
