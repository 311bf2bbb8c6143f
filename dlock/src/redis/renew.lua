-- Sets a lease back to its full TTL, if its owner still holds it.
--
-- KEYS[1]  the owner token, while the lease is held
-- ARGV[1]  the owner token of the caller
-- ARGV[2]  the TTL in milliseconds
-- ARGV[3]  optional: any text; asks for the server's own commands as well
--
-- Returns one of:
-- 1          Extended.
-- 0          The lease has expired, or another owner holds it. Nothing is changed: the lease is not acquired
--            again.
-- {n, name}  One of these, from a server that has compare-and-set and the compare-and-delete `name`. Only if
--            ARGV[3] asks for it.
local call, keys, args = redis.call, KEYS, ARGV

-- Returns the name of the server's own compare-and-delete, if the user may run it. A server without it throws
-- an error, as do servers before Redis 7, which lack the function that is called here.
local function own_command()
  for _, command in ipairs({{'DELEX', keys[1], 'IFEQ', args[1]}, {'DELIFEQ', keys[1], args[1]}}) do
    local is_known, is_allowed = pcall(redis.acl_check_cmd, unpack(command))
    if is_known and is_allowed then return command[1] end
  end
end

local function answer(number)
  local name = args[3] and own_command()
  if name then return {number, name} end
  return number
end

if call('GET', keys[1]) == args[1] then
  return answer(call('PEXPIRE', keys[1], args[2]))
end
return answer(0)
