-- Under fuzzing alone: refuses a pattern that could take too long on its text. Lua matches patterns in C, where
-- no limit on instructions counts, and the time may be exponential, in Redis as well as here.

local COST_MAX = 1000000
local gmatch = string.gmatch

local function check(text, pattern)
  local length = #tostring(text) + 1
  local cost = length
  for part in gmatch(tostring(pattern), '[*+?-]') do
    cost = cost * (part == '?' and 2 or length)
  end
  for _ in gmatch(tostring(pattern), '%%[bf]') do cost = cost * length end
  if cost > COST_MAX then error('the pattern could take too long', 0) end
end

for _, name in ipairs({ 'find', 'match', 'gmatch', 'gfind', 'gsub' }) do
  local raw = string[name]
  string[name] = function(text, pattern, ...)
    check(text, pattern)
    return raw(text, pattern, ...)
  end
end
