-- Does for several claims, one after the other, what acquire.lua does for one: what a call costs the server besides its
-- script is spent once.
--
-- KEYS  of each claim the key of the owner token and that of the fencing counter
-- ARGV  of each claim the owner token and the TTL in milliseconds
--
-- A table with acquire.lua's answer to each claim. What fails for one is its answer, and nothing to the others
local call, keys, args, answers = redis.call, KEYS, ARGV, {}

local function acquire(i)
  if call('SET', keys[i], args[i], 'NX', 'PX', args[i + 1]) then
    return call('INCR', keys[i + 1])
  end
  if call('GET', keys[i]) == args[i] then
    return {1, tonumber(call('GET', keys[i + 1])), call('PTTL', keys[i])}
  end
  return {0, call('PTTL', keys[i])}
end

for i = 1, #keys, 2 do
  local done, answer = pcall(acquire, i)
  -- Servers before Redis 7 throw a text.
  if not done and type(answer) ~= 'table' then answer = {err = answer} end
  answers[(i + 1) / 2] = answer
end
return answers
