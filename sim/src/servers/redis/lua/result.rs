//! Reads the reply from the result of a script on Lua's stack.
//!
//! The rules at the head of [`gate`](super::gate) hold here: a function that *may throw* owns nothing.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use mlua::ffi::{self, lua_State};

use super::convert;
use super::room::{self, Room};
use super::stack::{slot, text};
use crate::servers::redis::reply::Reply;

/// The largest nesting of tables in a reply; a table that contains itself is cut off here.
pub(super) const DEPTH_MAX: i32 = 1000;
/// The nesting of tables that fits the stack of a C function without a check: one slot each, and two more.
pub(super) const SHALLOW: i32 = 4;

/// Reads the reply from the value on top of the stack, with at most `levels` nested tables. For deeper ones
/// returns `None` or, if `is_cut`, puts an error in place of the innermost table. Once it exceeds `room`, the
/// rest is left out. Never throws. Source: `script_lua.c` of Redis 7.0.
///
/// # Safety
///
/// `state` runs `gate::run_script`, with room on its stack for a slot a level and two more.
pub(super) unsafe fn reply_at(
    state: *mut lua_State,
    levels: i32,
    is_cut: bool,
    room: &mut Room,
) -> Option<Reply> {
    // SAFETY: the caller's promise; each function is called for the type that it is for.
    unsafe {
        Some(match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => {
                let text = text(state, -1);
                if room.take(text.len()) { Reply::bulk(text) } else { Reply::Nil }
            }
            ffi::LUA_TNUMBER => Reply::Integer(convert::truncate(ffi::lua_tonumber(state, -1))),
            ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, -1) != 0 => Reply::Integer(1),
            ffi::LUA_TTABLE if levels > 0 => return table_reply(state, levels, is_cut, room),
            ffi::LUA_TTABLE if is_cut => Reply::error("ERR reached lua stack limit"),
            ffi::LUA_TTABLE => return None,
            _ => Reply::Nil,
        })
    }
}

/// As [`reply_at`], of a table.
///
/// # Safety
///
/// As for [`reply_at`].
unsafe fn table_reply(state: *mut lua_State, levels: i32, is_cut: bool, room: &mut Room) -> Option<Reply> {
    // SAFETY: the caller's promise. Reading a table without its metatable calls nothing and allocates
    // nothing.
    unsafe {
        let mut special = |key, kind, read: fn(*mut lua_State) -> Reply| {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(key));
            ffi::lua_rawget_(state, -2);
            let has_kind = ffi::lua_type(state, -1) == kind;
            let fits = has_kind && (kind != ffi::LUA_TSTRING || room.take(text(state, -1).len()));
            let reply = has_kind.then(|| if fits { read(state) } else { Reply::Nil });
            ffi::lua_settop(state, -2);
            reply
        };
        let special = special(slot::ERR, ffi::LUA_TSTRING, |state| Reply::error_text(text(state, -1)))
            .or_else(|| {
                special(slot::OK, ffi::LUA_TSTRING, |state| Reply::Status(text(state, -1).to_vec().into()))
            })
            .or_else(|| {
                special(slot::DOUBLE, ffi::LUA_TNUMBER, |state| Reply::Double(ffi::lua_tonumber(state, -1)))
            });
        if special.is_some() {
            return special;
        }
        let mut items = Vec::new();
        for index in 1.. {
            ffi::lua_rawgeti_(state, -1, index);
            let item = match ffi::lua_type(state, -1) {
                ffi::LUA_TNIL => None,
                _ if !room.take(room::ITEM_BYTES) => None,
                _ => Some(reply_at(state, levels - 1, is_cut, room)),
            };
            ffi::lua_settop(state, -2);
            match item {
                Some(item) => items.push(item?),
                None => break,
            }
        }
        if items.is_empty()
            && let Some(keyed) = keyed_reply(state, levels, is_cut, room)
        {
            return keyed;
        }
        Some(Reply::Array(items))
    }
}

/// As [`reply_at`], of a table with a field `map` or `set`; `None` if it has neither.
///
/// # Safety
///
/// As for [`reply_at`].
unsafe fn keyed_reply(
    state: *mut lua_State,
    levels: i32,
    is_cut: bool,
    room: &mut Room,
) -> Option<Option<Reply>> {
    // The table of the field, a key, its value and the key again are on the stack.
    const SLOTS: i32 = 4;
    // SAFETY: the caller's promise. Iterating over a table allocates nothing.
    unsafe {
        let is_map = push_table(state, slot::MAP);
        if !is_map && !push_table(state, slot::SET) {
            return None;
        }
        let top = ffi::lua_gettop(state);
        let (mut pairs, mut is_complete) = (Vec::new(), levels >= SLOTS || is_cut);
        ffi::lua_pushnil(state);
        while is_complete && ffi::lua_next(state, top) != 0 {
            let mut read = || reply_at(state, (levels - SLOTS).max(0), is_cut, room);
            let value = if is_map { read() } else { Some(Reply::Nil) };
            ffi::lua_pushvalue(state, -2);
            let key = read();
            ffi::lua_settop(state, top + 1);
            match key.zip(value) {
                Some(pair) if room.take(room::ITEM_BYTES) => pairs.push(pair),
                Some(_) => break,
                None => is_complete = false,
            }
        }
        ffi::lua_settop(state, top - 1);
        let reply = if is_map {
            Reply::Pairs(pairs)
        } else {
            Reply::Set(pairs.into_iter().map(|(member, _)| member).collect())
        };
        Some(is_complete.then_some(reply))
    }
}

/// Pushes the field of the table on top of the stack whose name is in the upvalue `name`, if it is a table.
/// Returns whether it is.
unsafe fn push_table(state: *mut lua_State, name: i32) -> bool {
    // SAFETY: as for `table_reply`.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(name));
        ffi::lua_rawget_(state, -2);
        let is_table = ffi::lua_type(state, -1) == ffi::LUA_TTABLE;
        if !is_table {
            ffi::lua_settop(state, -2);
        }
        is_table
    }
}
