-- Builds the globals of scripts, once for each interpreter: Redis' functions and those libraries of Lua 5.1
-- that Redis has. No script can change them for the next one. Argument: the functions that Rust provides.
-- Returns: the globals; the table behind them, which takes KEYS and ARGV; the handler of scripts' errors.
--
-- Redis marks tables as read-only in its patched Lua. Plain Lua has no such mark, so each shared table is
-- hidden behind an empty proxy that passes reads on and refuses writes.

local host = ...

local error, select, type, tostring, tonumber, unpack = error, select, type, tostring, tonumber, unpack
local raw_next, raw_rawset, raw_setmetatable, raw_getmetatable = next, rawset, setmetatable, getmetatable
local raw_pcall, raw_xpcall, raw_load, raw_loadstring = pcall, xpcall, load, loadstring
local raw_rawget, setfenv, sub, byte, floor = rawget, setfenv, string.sub, string.byte, math.floor
local concat, find, format, raw_collectgarbage = table.concat, string.find, string.format, collectgarbage

local STOPPED = 'the script ran for too long and was stopped'
local READ_ONLY = 'Attempt to modify a readonly table'
local contents_of = raw_setmetatable({}, { __mode = 'k' })

local function refuse_write() error(READ_ONLY, 2) end

local function guard(contents)
  local proxy = raw_setmetatable({}, { __index = contents, __newindex = refuse_write })
  contents_of[proxy] = contents
  return proxy
end

local function copy(from, names)
  local to = {}
  for name in names:gmatch('%S+') do to[name] = from[name] end
  return to
end

local redis = {
  call = host.call, pcall = host.pcall, sha1hex = host.sha1hex, log = host.log,
  acl_check_cmd = host.acl_check_cmd,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_ALL = 3, REPL_AOF = 1, REPL_NONE = 0, REPL_REPLICA = 2, REPL_SLAVE = 2,
  REDIS_VERSION = '7.0.15', REDIS_VERSION_NUM = 458767,
}

function redis.error_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  if byte(text) == 45 then text = sub(text, 2) end
  text = text:gsub('[\r\n]+$', '')
  if not text:find(' ', 1, true) then text = 'ERR ' .. text end
  return { err = text }
end

function redis.status_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return { ok = text }
end

function redis.setresp(...)
  if select('#', ...) ~= 1 then error({ err = 'ERR redis.setresp() requires one argument.' }) end
  local version = floor(tonumber((...)) or 0)
  if version ~= 2 and version ~= 3 then error({ err = 'ERR RESP version must be 2 or 3.' }) end
  host.set_resp(version)
end

function redis.set_repl() end

function redis.replicate_commands() return true end

function redis.breakpoint() return false end

function redis.debug() end

local math_library = copy(math, [[abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp
  log log10 max min mod modf pi pow rad sin sinh sqrt tan tanh]])
math_library.random, math_library.randomseed = host.random, host.randomseed

local builtins = copy(_G, [[_VERSION assert error ipairs next rawequal rawget select tonumber type unpack]])
local environment = guard(builtins)

-- Returns the text of a value. Addresses differ from run to run, so a script sees numbers in their place, in
-- the order in which it asks for them.
local numbers, count, numbered_in = nil, 0, nil
local function text_of(value)
  local kind, text = type(value), tostring(value)
  if kind == 'string' or kind == 'number' or not find(text, '^' .. kind .. ': 0x%x+$') then return text end
  local script = host.script_number()
  if numbered_in ~= script then
    numbers, count, numbered_in = raw_setmetatable({}, { __mode = 'k' }), 0, script
  end
  local number = numbers[value]
  if not number then
    count = count + 1
    number = count
    numbers[value] = number
  end
  return format('%s: 0x%012x', kind, 0x7f0000000000 + 64 * number)
end

function builtins.tostring(...)
  if select('#', ...) == 0 then error("bad argument #1 to 'tostring' (value expected)", 2) end
  return text_of((...))
end

-- The memory that an interpreter takes depends on what other runs have left there: a script sees the same
-- numbers at any time, and changes nothing for the next one.
local collected = { collect = 0, count = 64, step = true, stop = 0, restart = 0, setpause = 200,
  setstepmul = 200 }

function builtins.collectgarbage(option)
  if option == nil then option = 'collect' end
  local answer = collected[option]
  if answer == nil then
    local kind = type(option)
    local why = (kind == 'string' or kind == 'number') and "invalid option '" .. option .. "'"
      or 'string expected, got ' .. kind
    error("bad argument #1 to 'collectgarbage' (" .. why .. ')', 2)
  end
  if option == 'collect' or option == 'step' then raw_collectgarbage() end
  return answer
end

function builtins.gcinfo() return collected.count end

-- Converts an error that Rust threw, an opaque value, to what Redis throws: a table for the error of a
-- command, a string for any other.
local function plain(failure)
  if type(failure) ~= 'userdata' then return failure end
  local text, is_reply = host.error_text(failure)
  -- The only other value of this type is `cjson.null`.
  if not text then return failure end
  if is_reply then return { err = text, ignore_error_stats_update = true } end
  return text
end

-- Stops a script again that has used up its instructions and caught the error.
local function rethrow_stop()
  if host.is_stopped() then error(STOPPED, 0) end
end

-- Returns the text of an error table, as Redis' pcall does.
local function unwrap(ok, ...)
  if ok then return ok, ... end
  rethrow_stop()
  local failure = plain((...))
  if type(failure) == 'table' then
    local text = raw_rawget(failure, 'err')
    if type(text) == 'string' then return false, text end
  end
  return false, failure
end

function builtins.pcall(...)
  if select('#', ...) == 0 then return false, "bad argument #1 to 'pcall' (value expected)" end
  return unwrap(raw_pcall(...))
end

local function handled(ok, ...)
  if not ok then rethrow_stop() end
  return ok, ...
end

function builtins.xpcall(body, handler)
  local function handle(failure)
    -- An error in a handler calls it again, up to the limit of C's stack: a script that is stopped in a
    -- handler which calls xpcall would go on, for a time that doubles at each level.
    if host.is_stopped() then return STOPPED end
    return handler(plain(failure))
  end
  return handled(raw_xpcall(body, handle))
end

local coroutine_library = copy(coroutine, 'create running status wrap yield')

local function resumed(ok, ...)
  if ok then return ok, ... end
  rethrow_stop()
  return false, plain((...))
end

local raw_resume = coroutine.resume

function coroutine_library.resume(...) return resumed(raw_resume(...)) end

function builtins.next(t, key) return raw_next(contents_of[t] or t, key) end

function builtins.pairs(t)
  if type(t) ~= 'table' then
    error("bad argument #1 to 'pairs' (table expected, got " .. type(t) .. ")", 2)
  end
  return raw_next, contents_of[t] or t, nil
end

function builtins.rawset(t, key, value)
  if contents_of[t] then error(READ_ONLY, 0) end
  return raw_rawset(t, key, value)
end

function builtins.rawget(t, key) return raw_rawget(contents_of[t] or t, key) end

function builtins.setmetatable(t, metatable)
  if contents_of[t] then error(READ_ONLY, 0) end
  return raw_setmetatable(t, metatable)
end

local string_library

function builtins.getmetatable(value)
  if type(value) == 'string' then return guard({ __index = string_library }) end
  if contents_of[value] then return guard({}) end
  return raw_getmetatable(value)
end

-- Loads text only: compiled code could forge any value.
local function load_text(text, name)
  if byte(text) == 27 then return nil, 'bad binary format' end
  local chunk, failure = raw_loadstring(text, name)
  if chunk then setfenv(chunk, environment) end
  return chunk, failure
end

function builtins.loadstring(text, name) return load_text(text, name) end

function builtins.load(read, name)
  -- Joined at the end: to copy the text for each part would take time without an end, in few instructions.
  local parts, count = {}, 0
  while true do
    local part = read()
    if part == nil or part == '' then return load_text(concat(parts), name or '=(load)') end
    count = count + 1
    parts[count] = part
  end
end

string_library = guard(copy(string, [[byte char dump find format gfind gmatch gsub len lower match rep reverse
  sub upper]]))
raw_getmetatable('').__index = string_library

builtins._G = environment
builtins.string = string_library
builtins.math = guard(math_library)
builtins.table = guard(copy(table, 'concat foreach foreachi getn insert maxn remove setn sort'))
builtins.coroutine = guard(coroutine_library)
builtins.redis = guard(redis)
for name, library in pairs(host.libraries(contents_of)) do builtins[name] = guard(library) end
builtins.KEYS = {}
builtins.ARGV = {}

raw_setmetatable(builtins, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. text_of(name) .. "'", 2)
  end,
})

-- Adds the line at which the script failed.
local function explain(failure)
  failure = plain(failure)
  if type(failure) ~= 'table' then failure = { err = 'ERR ' .. text_of(failure) } end
  failure.line = host.caller_line()
  return failure
end

return environment, builtins, explain
