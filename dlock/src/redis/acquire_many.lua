-- Runs acquire.lua for several claims, one after the other, so that the cost of a call is paid once.
--
-- KEYS  for each claim: the key of the owner token, and the key of the fencing counter
-- ARGV  for each claim: the owner token, and the TTL in milliseconds
--
-- Returns a table with acquire.lua's reply to each claim. An error in one claim is the reply to that claim,
-- and does not affect the others.
local call, keys, args, answers = redis.call, KEYS, ARGV, {}

local function acquire(i)
  if call('SET', keys[i], args[i], 'NX', 'PX', args[i + 1]) then
    local fence = call('INCR', keys[i + 1])
    if fence < 9007199254740992 then return fence end
    return call('GET', keys[i + 1])
  end
  if call('GET', keys[i]) == args[i] then
    return {1, call('GET', keys[i + 1]), call('PTTL', keys[i])}
  end
  return {0, call('PTTL', keys[i])}
end

for i = 1, #keys, 2 do
  local done, answer = pcall(acquire, i)
  -- Servers before Redis 7 throw a string.
  if not done and type(answer) ~= 'table' then answer = {err = answer} end
  answers[(i + 1) / 2] = answer
end
return answers
