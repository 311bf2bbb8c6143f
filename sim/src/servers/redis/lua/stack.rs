//! Pushes replies and texts on Lua's stack.
//!
//! The rules at the head of [`gate`](super::gate) hold here: a function that *may throw* owns nothing.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use mlua::ffi::{self, lua_State};

use crate::servers::redis::number::format_f64;
use crate::servers::redis::reply::{Protocol, Reply};
use crate::servers::redis::request::Args;

/// KEYS and ARGV of up to this many elements are kept for the next script.
const KEPT_MAX: usize = 16;

/// The upvalues of `gate::run_script`.
pub(super) mod slot {
    pub(in super::super) const BUILTINS: i32 = 1;
    pub(in super::super) const KEYS: i32 = 2;
    pub(in super::super) const ARGV: i32 = 3;
    pub(in super::super) const ERR: i32 = 4;
    pub(in super::super) const OK: i32 = 5;
    pub(in super::super) const DOUBLE: i32 = 6;
    pub(in super::super) const KEYS_TABLE: i32 = 7;
    pub(in super::super) const ARGV_TABLE: i32 = 8;
    pub(in super::super) const MAP: i32 = 9;
    pub(in super::super) const SET: i32 = 10;
    pub(in super::super) const COUNT: i32 = 10;
}

/// The upvalues of `gate::call`: its own state, and the texts of its most frequent reply, which saves a
/// lookup.
pub(super) mod call_slot {
    pub(in super::super) const RUNNING: i32 = 1;
    pub(in super::super) const THROWS: i32 = 2;
    pub(in super::super) const OK: i32 = 3;
    pub(in super::super) const OK_VALUE: i32 = 4;
    pub(in super::super) const COUNT: i32 = 4;
}

/// Pushes the result of `redis.call` for a reply. `protocol` is the script's choice by `redis.setresp`. *May
/// throw*.
///
/// # Safety
///
/// `state` runs `gate::call`, and `reply` is alive and does not change.
pub(super) unsafe fn push_reply(state: *mut lua_State, reply: *const Reply, protocol: Protocol) {
    // SAFETY: the caller's promise, and rule 1: everything here is borrowed.
    unsafe {
        ffi::luaL_checkstack_(state, 4, c"a reply".as_ptr());
        match &*reply {
            Reply::Bulk(bytes) | Reply::Verbatim(bytes) => push_text(state, bytes),
            Reply::Integer(number) => ffi::lua_pushnumber(state, *number as f64),
            Reply::Nil | Reply::NilArray if protocol == Protocol::Resp3 => ffi::lua_pushnil(state),
            // Scripts can't call the commands that answer with the last two.
            Reply::Nil
            | Reply::NilArray
            | Reply::Encoded(_)
            | Reply::Silence
            | Reply::Push(_)
            | Reply::Several(_) => ffi::lua_pushboolean(state, 0),
            Reply::Status(text) => {
                ffi::lua_createtable(state, 0, 1);
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(call_slot::OK));
                match &**text {
                    b"OK" => ffi::lua_pushvalue(state, ffi::lua_upvalueindex(call_slot::OK_VALUE)),
                    text => push_text(state, text),
                }
                ffi::lua_rawset(state, -3);
            }
            Reply::Error(text) => {
                ffi::lua_createtable(state, 0, 1);
                push_text(state, b"err");
                push_text(state, text);
                ffi::lua_rawset(state, -3);
            }
            Reply::Array(items) => {
                ffi::lua_createtable(state, items.len() as i32, 0);
                for (at, item) in items.iter().enumerate() {
                    push_reply(state, item, protocol);
                    ffi::lua_rawseti_(state, -2, at as i32 + 1);
                }
            }
            Reply::Double(number) if protocol == Protocol::Resp3 => {
                ffi::lua_createtable(state, 0, 1);
                push_text(state, b"double");
                ffi::lua_pushnumber(state, *number);
                ffi::lua_rawset(state, -3);
            }
            Reply::Double(number) => push_double(state, *number),
            Reply::Set(_) | Reply::Pairs(_) | Reply::Nested(_) => push_elements(state, reply, protocol),
            // No command that scripts may call answers with one.
            Reply::Map(fields) => {
                ffi::lua_createtable(state, 2 * fields.len() as i32, 0);
                for (at, (name, field)) in fields.iter().enumerate() {
                    push_text(state, name.as_bytes());
                    ffi::lua_rawseti_(state, -2, 2 * at as i32 + 1);
                    push_reply(state, field, protocol);
                    ffi::lua_rawseti_(state, -2, 2 * at as i32 + 2);
                }
            }
        }
    }
}

/// Pushes a number as a text. *May throw*: the text is copied to the stack of this function first.
///
/// # Safety
///
/// As for [`push_reply`].
unsafe fn push_double(state: *mut lua_State, number: f64) {
    let mut digits = [0; 32];
    let length = {
        let text = format_f64(number);
        let length = text.len().min(digits.len());
        digits[..length].copy_from_slice(&text.as_bytes()[..length]);
        length
    };
    // SAFETY: the caller's promise. The text of `format_f64` was dropped.
    unsafe { push_text(state, &digits[..length]) }
}

/// Pushes a set or pairs: in RESP3 as the table of a field `set` or `map`. *May throw*.
///
/// # Safety
///
/// As for [`push_reply`].
unsafe fn push_elements(state: *mut lua_State, reply: *const Reply, protocol: Protocol) {
    // SAFETY: the caller's promise, and rule 1: everything here is borrowed.
    unsafe {
        ffi::luaL_checkstack_(state, 6, c"a reply".as_ptr());
        let is_resp3 = protocol == Protocol::Resp3;
        let (name, is_keyed) = match &*reply {
            Reply::Set(_) => (c"set", is_resp3),
            Reply::Pairs(_) => (c"map", is_resp3),
            _ => (c"", false),
        };
        if is_keyed {
            ffi::lua_createtable(state, 0, 1);
            push_text(state, name.to_bytes());
        }
        ffi::lua_createtable(state, 0, 0);
        let push_item = |at: i32, item: &Reply| {
            push_reply(state, item, protocol);
            ffi::lua_rawseti_(state, -2, at);
        };
        match &*reply {
            Reply::Set(items) if !is_keyed => {
                items.iter().zip(1..).for_each(|(item, at)| push_item(at, item));
            }
            Reply::Set(items) => items.iter().for_each(|item| push_field(state, item, None, protocol)),
            Reply::Pairs(pairs) if is_keyed => {
                pairs.iter().for_each(|(key, value)| push_field(state, key, Some(value), protocol));
            }
            Reply::Nested(pairs) if is_resp3 => {
                for ((one, other), at) in pairs.iter().zip(1..) {
                    ffi::lua_createtable(state, 2, 0);
                    push_reply(state, one, protocol);
                    ffi::lua_rawseti_(state, -2, 1);
                    push_reply(state, other, protocol);
                    ffi::lua_rawseti_(state, -2, 2);
                    ffi::lua_rawseti_(state, -2, at);
                }
            }
            Reply::Pairs(pairs) | Reply::Nested(pairs) => {
                for ((one, other), at) in pairs.iter().zip(0..) {
                    push_item(2 * at + 1, one);
                    push_item(2 * at + 2, other);
                }
            }
            _ => {}
        }
        if is_keyed {
            ffi::lua_rawset(state, -3);
        }
    }
}

/// Sets a field of the table on top of the stack; without a value, to true. *May throw*.
///
/// # Safety
///
/// As for [`push_reply`].
unsafe fn push_field(state: *mut lua_State, key: &Reply, value: Option<&Reply>, protocol: Protocol) {
    // SAFETY: the caller's promise.
    unsafe {
        push_reply(state, key, protocol);
        match value {
            Some(value) => push_reply(state, value, protocol),
            None => ffi::lua_pushboolean(state, 1),
        }
        ffi::lua_rawset(state, -3);
    }
}

/// Fills the table in the upvalue `kept` with `texts`. If the last script changed it beyond its elements, a
/// new table replaces it, in the upvalue and in BUILTINS under the name in the upvalue `name`. *May throw*.
///
/// A script that has ended has no reference to the table: nothing in which it could store one outlives it.
///
/// # Safety
///
/// `state` runs `gate::run_script`, with room on its stack for four more.
pub(super) unsafe fn set_texts(state: *mut lua_State, name: i32, kept: i32, texts: Args<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(kept));
        if !empty(state) {
            ffi::lua_settop(state, -2);
            ffi::lua_createtable(state, texts.len() as i32, 0);
            ffi::lua_pushvalue(state, -1);
            ffi::lua_replace(state, ffi::lua_upvalueindex(kept));
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(slot::BUILTINS));
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(name));
            ffi::lua_pushvalue(state, -3);
            ffi::lua_rawset(state, -3);
            ffi::lua_settop(state, -2);
        }
        for (at, text) in texts.iter().enumerate() {
            push_text(state, text);
            ffi::lua_rawseti_(state, -2, at as i32 + 1);
        }
        ffi::lua_settop(state, -2);
    }
}

/// Empties the array on top of the stack. Returns true if it can be reused: it had no metatable, no other
/// fields, and so few elements that the empty slots cost little. Never throws.
unsafe fn empty(state: *mut lua_State) -> bool {
    // SAFETY: the caller has asked for the stack. Only what exists is set to nil, which allocates nothing;
    // asking a table for its first key neither.
    unsafe {
        if ffi::lua_getmetatable(state, -1) != 0 {
            ffi::lua_settop(state, -2);
            return false;
        }
        let length = ffi::lua_objlen(state, -1);
        if length > KEPT_MAX {
            return false;
        }
        for index in 1..=length as i32 {
            ffi::lua_pushnil(state);
            ffi::lua_rawseti_(state, -2, index);
        }
        ffi::lua_pushnil(state);
        let has_more = ffi::lua_next(state, -2) != 0;
        if has_more {
            ffi::lua_settop(state, -3);
        }
        !has_more
    }
}

/// Pushes a text. *May throw*.
pub(super) unsafe fn push_text(state: *mut lua_State, text: &[u8]) {
    // SAFETY: the caller has asked for the stack; Lua copies the bytes.
    unsafe { ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len()) }
}

/// Returns the bytes of the text at `index`. Never throws, since no number is converted.
///
/// # Safety
///
/// It is a text, and stays on the stack for as long as the bytes are used.
pub(super) unsafe fn text<'a>(state: *mut lua_State, index: i32) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = ffi::lua_tolstring(state, index, &raw mut length);
        std::slice::from_raw_parts(bytes.cast(), length)
    }
}
