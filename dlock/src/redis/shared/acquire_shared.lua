-- Acquires a lease as acquire.lua does, with a token from a counter that many locks share. Since the counter
-- goes on, the token is stored with the owner.
--
-- KEYS[1]  the owner token, `#` and the fencing token, while the lease is held
-- KEYS[2]  the fencing counter that the lock had of its own, if it had one
-- KEYS[3]  the shared fencing counter, which never expires
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
--
-- Returns one of:
-- fence             Granted now; the shared counter is incremented. A number, or the text of the counter, as
--                   in acquire.lua. A counter of the lock's own is gone, and the shared one is above it.
-- {1, fence, pttl}  Granted before to the same owner, as in acquire.lua. Nothing is changed.
-- {0, pttl}         Held by another owner for pttl ms more, or for ever if pttl is -1. Nothing is changed.
local call, keys, args = redis.call, KEYS, ARGV
local stored = call('GET', keys[1])
if stored then
  local head = args[1] .. '#'
  if string.sub(stored, 1, #head) == head then
    return {1, string.sub(stored, #head + 1), call('PTTL', keys[1])}
  end
  return {0, call('PTTL', keys[1])}
end
local own = call('GET', keys[2])
if own then
  local shared = call('GET', keys[3]) or ''
  if #own > #shared or (#own == #shared and own > shared) then call('SET', keys[3], own) end
  call('DEL', keys[2])
end
local number = call('INCR', keys[3])
local fence = call('GET', keys[3])
call('SET', keys[1], args[1] .. '#' .. fence, 'PX', args[2])
if number < 9007199254740992 then return number end
return fence
