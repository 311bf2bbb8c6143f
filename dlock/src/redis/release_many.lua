-- Runs release.lua for several claims, one after the other, so that the cost of a call is paid once.
--
-- KEYS  for each claim: the key of the owner token
-- ARGV  for each claim: the owner token, and the channel on which to notify waiters; an empty text is none
--
-- Returns a table with release.lua's reply to each claim. An error in one claim is the reply to that claim,
-- and does not affect the others.
local call, keys, args, answers = redis.call, KEYS, ARGV, {}

local function release(i)
  if call('GET', keys[i]) == args[2 * i - 1] then
    call('DEL', keys[i])
    if args[2 * i] ~= '' then
      -- Waiters also poll, so a user without the right to publish can still release.
      redis.pcall('PUBLISH', args[2 * i], '')
    end
    return 1
  end
  return 0
end

for i = 1, #keys do
  local done, answer = pcall(release, i)
  -- Servers before Redis 7 throw a string.
  if not done and type(answer) ~= 'table' then answer = {err = answer} end
  answers[i] = answer
end
return answers
