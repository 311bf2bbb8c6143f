//! The libraries that Redis adds to those of Lua: `bit`, `cjson`, `cmsgpack` and `struct`.
//!
//! They are on Lua's own C interface, as those of Redis are: Lua itself converts and checks arguments, names
//! the function in an error and adds its place.
//!
//! All functions here *may throw*, so the rules at the head of [`gate`](super::gate) hold for them: they own
//! nothing that needs dropping. Texts and nested tables under work are in [`Buffer`]s, which are in Lua's
//! memory: its limit is theirs, and its collector frees them after an error.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

mod bit;
mod buffer;
mod cjson;
mod cmsgpack;
mod slot;
mod structs;

use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex};

use mlua::ffi::{self, lua_CFunction, lua_State};
use mlua::{Function, LightUserData, Lua, Table, Value};

use self::buffer::Buffer;
use super::{Running, convert};

/// The functions of a library by name.
type Functions = [(&'static CStr, lua_CFunction)];

/// Throws a text, with the place of the script's call before it, as `luaL_error` does. *May throw*.
macro_rules! fail {
    ($state:expr, $format:literal $(, $argument:expr)*) => {{
        // The stack may be full.
        mlua::ffi::lua_settop($state, 0);
        mlua::ffi::luaL_where($state, 1);
        mlua::ffi::lua_pushfstring($state, $format.as_ptr() $(, $argument)*);
        mlua::ffi::lua_concat($state, 2);
        mlua::ffi::lua_error($state)
    }};
}
use fail;

/// Creates the four libraries. `contents` has the contents of the tables that the sandbox guards.
pub(super) fn create(lua: &Lua, running: &Arc<Mutex<Running>>, contents: &Table) -> mlua::Result<Table> {
    let libraries = lua.create_table()?;
    let functions: [(_, &Functions); 4] = [
        ("bit", bit::FUNCTIONS),
        ("cjson", cjson::FUNCTIONS),
        ("cmsgpack", cmsgpack::FUNCTIONS),
        ("struct", structs::FUNCTIONS),
    ];
    for (name, functions) in functions {
        let library = lua.create_table()?;
        for (name, function) in functions {
            library
                .raw_set(lua.create_string(name.to_bytes())?, closure(lua, running, contents, *function)?)?;
        }
        libraries.raw_set(name, library)?;
    }
    let json: Table = libraries.raw_get("cjson")?;
    json.raw_set("null", Value::NULL)?;
    for (name, text) in cjson::TEXTS {
        json.raw_set(*name, *text)?;
    }
    let msgpack: Table = libraries.raw_get("cmsgpack")?;
    for (name, text) in cmsgpack::TEXTS {
        msgpack.raw_set(*name, *text)?;
    }
    Ok(libraries)
}

fn closure(
    lua: &Lua,
    running: &Arc<Mutex<Running>>,
    contents: &Table,
    function: lua_CFunction,
) -> mlua::Result<Function> {
    let running = LightUserData(Arc::as_ptr(running).cast_mut().cast::<c_void>());
    // SAFETY: `exec_raw` pushes the upvalues and protects the call; the closure owns nothing. The engine
    // keeps `running` alive for as long as the interpreter.
    unsafe {
        lua.exec_raw((running, contents.clone(), false, false), |state| {
            ffi::lua_pushcclosure(state, function, slot::COUNT);
        })
    }
}

/// Throws the error of an argument.
///
/// # Safety
///
/// `state` runs a function of these libraries; *may throw*.
unsafe fn fail_argument(state: *mut lua_State, argument: i32, text: &CStr) -> ! {
    // SAFETY: the caller's promise. The second function does not return.
    unsafe {
        // The stack may be full.
        ffi::lua_settop(state, 0);
        ffi::luaL_argerror(state, argument, text.as_ptr());
        ffi::lua_error(state)
    }
}

/// Asks for `slots` more on the stack, as `luaL_checkstack` does. An error quotes `text`.
///
/// # Safety
///
/// `state` runs a function of these libraries; *may throw*.
unsafe fn reserve(state: *mut lua_State, slots: i32, text: &CStr) {
    // SAFETY: the caller's promise.
    unsafe {
        if ffi::lua_checkstack(state, slots) == 0 {
            fail!(state, c"stack overflow (%s)", text.as_ptr());
        }
    }
}

/// Returns the bytes of an argument that is a text or a number.
///
/// # Safety
///
/// `state` runs a function of these libraries, which keeps the argument on the stack; *may throw*.
unsafe fn text_argument<'a>(state: *mut lua_State, argument: i32) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = ffi::luaL_checklstring(state, argument, &raw mut length);
        std::slice::from_raw_parts(bytes.cast(), length)
    }
}

/// Replaces a guarded table on top of the stack by its contents.
///
/// # Safety
///
/// `state` runs a function of these libraries, with room on its stack for two more.
unsafe fn look_behind_guard(state: *mut lua_State) {
    // SAFETY: the caller's promise. Reading a table without its metatable calls nothing.
    unsafe {
        if ffi::lua_getmetatable(state, -1) == 0 {
            return;
        }
        ffi::lua_settop(state, -2);
        ffi::lua_pushvalue(state, -1);
        ffi::lua_rawget_(state, slot::CONTENTS);
        if ffi::lua_type(state, -1) == ffi::LUA_TTABLE {
            ffi::lua_replace(state, -2);
        } else {
            ffi::lua_settop(state, -2);
        }
    }
}

/// Converts a number to 64 unsigned bits as C does on the machines that Redis runs on.
fn unsigned(number: f64) -> u64 {
    const HIGHEST: f64 = 9_223_372_036_854_775_808.0;
    if number >= HIGHEST {
        convert::truncate(number - HIGHEST).cast_unsigned() ^ 1 << 63
    } else {
        convert::truncate(number).cast_unsigned()
    }
}

/// Converts a number to 32 bits as C does on the machines that Redis runs on.
fn int(number: f64) -> i32 {
    let whole = convert::truncate(number);
    i32::try_from(whole).unwrap_or(i32::MIN)
}

/// Runs each script of a table on a server of its own, and compares its result with that of Redis in the next
/// line.
#[cfg(test)]
fn check(table: &str) {
    use super::{PooledEngine, Script, digest};
    use crate::servers::redis::reply::Reply;
    use crate::servers::redis::request::ArgBuffer;

    let lines: Vec<&str> = table.lines().skip(1).collect();
    let mut differences = Vec::new();
    for pair in lines.chunks(2) {
        let (script, expected) = (pair[0], pair[1].strip_prefix("    ").unwrap());
        let text = format!(
            "local r = {{pcall(function() {script} end)}} local ok = table.remove(r, 1) \
             for i = 1, table.maxn(r) do r[i] = tostring(r[i]) end \
             return (ok and '' or 'failed: ') .. table.concat(r, ' ')"
        );
        let script_text = Script::parse(text.as_bytes()).unwrap();
        let name = digest(text.as_bytes());
        let mut engine = PooledEngine::take().unwrap();
        let reply = engine.run(&name, &script_text, 0, ArgBuffer::default().args(), &mut Box::default());
        let got = match &reply {
            Reply::Bulk(bytes) => bytes.escape_ascii().to_string(),
            other => format!("{other:?}"),
        };
        if got != expected {
            differences.push(format!("{script}\n  Redis: {expected}\n  ours:  {got}"));
        }
    }
    assert!(lines.len() > 30, "the table has only {} lines", lines.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
