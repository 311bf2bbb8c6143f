//! `cmsgpack.pack`.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};

use super::{Buffer, fail_argument, int, look_behind_guard, reserve, slot};
use crate::servers::redis::lua::{convert, stack};

/// The most nested tables that are packed; nil stands for deeper ones.
const NESTING_MAX: usize = 16;

/// `cmsgpack.pack(value, ...)`.
pub(super) unsafe extern "C-unwind" fn pack(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        let count = ffi::lua_gettop(state);
        if count == 0 {
            fail_argument(state, 0, c"MessagePack pack needs input.");
        }
        if ffi::lua_checkstack(state, count) == 0 {
            fail_argument(state, 0, c"Too many arguments for MessagePack pack.");
        }
        let mut out = Buffer::new(state, slot::TEXT);
        for index in 1..=count {
            reserve(state, 1, c"in function mp_check");
            ffi::lua_pushvalue(state, index);
            pack_value(state, &mut out, 0);
        }
        out.push_text();
        1
    }
}

/// Packs the value on top of the stack, and pops it.
///
/// # Safety
///
/// `state` runs [`pack`], which keeps the buffer; *may throw*.
unsafe fn pack_value(state: *mut lua_State, out: &mut Buffer<u8>, level: usize) {
    // SAFETY: the caller's promise. Each function is called for the type that it is for.
    unsafe {
        match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => pack_text(out, stack::text(state, -1)),
            ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, -1) != 0 => out.push(0xc3),
            ffi::LUA_TBOOLEAN => out.push(0xc2),
            ffi::LUA_TNUMBER => pack_number(out, ffi::lua_tonumber(state, -1)),
            ffi::LUA_TTABLE if level < NESTING_MAX => pack_table(state, out, level),
            _ => out.push(0xc0),
        }
        ffi::lua_settop(state, -2);
    }
}

/// Packs a length: in the byte `short` up to `limit`, behind the first of `long` that has room for it.
///
/// # Safety
///
/// As for [`pack_value`].
unsafe fn pack_length(out: &mut Buffer<u8>, length: usize, (short, limit): (u8, usize), long: [u8; 3]) {
    let bytes = length.to_be_bytes();
    // SAFETY: the caller's promise.
    unsafe {
        match length {
            _ if length <= limit => out.push(short | length as u8),
            // Only texts have a length of one byte.
            0..=0xff if long[0] != 0 => out.extend(&[long[0], bytes[7]]),
            0..=0xffff => out.extend(&[long[1], bytes[6], bytes[7]]),
            _ => out.extend(&[long[2], bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }
}

unsafe fn pack_text(out: &mut Buffer<u8>, text: &[u8]) {
    // SAFETY: as for `pack_value`.
    unsafe {
        pack_length(out, text.len(), (0xa0, 31), [0xd9, 0xda, 0xdb]);
        out.extend(text);
    }
}

unsafe fn pack_number(out: &mut Buffer<u8>, number: f64) {
    let whole = convert::truncate(number);
    let is_whole = whole as f64 == number;
    // SAFETY: as for `pack_value`.
    unsafe {
        if is_whole && number.is_finite() {
            return pack_integer(out, whole);
        }
        let short = number as f32;
        if f64::from(short) == number {
            out.push(0xca);
            out.extend(&short.to_be_bytes());
        } else {
            out.push(0xcb);
            out.extend(&number.to_be_bytes());
        }
    }
}

unsafe fn pack_integer(out: &mut Buffer<u8>, number: i64) {
    let bytes = number.to_be_bytes();
    let (kind, length) = match number {
        -32..=127 => (bytes[7], 0),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    // SAFETY: as for `pack_value`.
    unsafe {
        out.push(kind);
        out.extend(&bytes[8 - length..]);
    }
}

/// Packs the table on top of the stack: as an array if its keys are the numbers from 1, otherwise as a map.
///
/// # Safety
///
/// As for [`pack_value`].
unsafe fn pack_table(state: *mut lua_State, out: &mut Buffer<u8>, level: usize) {
    // SAFETY: the caller's promise. The slots are there before they are used.
    unsafe {
        reserve(state, 3, c"in function table_is_an_array");
        look_behind_guard(state);
        if is_array(state) {
            let length = ffi::lua_objlen(state, -1);
            pack_length(out, length, (0x90, 15), [0, 0xdc, 0xdd]);
            reserve(state, 2, c"in function mp_encode_lua_table_as_array");
            for index in 1..=length {
                ffi::lua_rawgeti_(state, -1, index as c_int);
                pack_value(state, out, level + 1);
            }
            return;
        }
        reserve(state, 4, c"in function mp_encode_lua_table_as_map");
        let mut count = 0;
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            ffi::lua_settop(state, -2);
            count += 1;
        }
        pack_length(out, count, (0x80, 15), [0, 0xde, 0xdf]);
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            ffi::lua_pushvalue(state, -2);
            pack_value(state, out, level + 1);
            pack_value(state, out, level + 1);
        }
    }
}

/// Returns true if the keys of the table on top of the stack are the numbers from 1 to their count.
///
/// # Safety
///
/// As for [`pack_value`], with two free slots.
unsafe fn is_array(state: *mut lua_State) -> bool {
    let (mut count, mut largest) = (0, 0);
    // SAFETY: the caller's promise.
    unsafe {
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            ffi::lua_settop(state, -2);
            let is_number = ffi::lua_type(state, -1) == ffi::LUA_TNUMBER;
            let key = if is_number { ffi::lua_tonumber(state, -1) } else { 0.0 };
            if key <= 0.0 || f64::from(int(key)) < key || key.floor() < key {
                ffi::lua_settop(state, -2);
                return false;
            }
            largest = int(key).max(largest);
            count += 1;
        }
    }
    largest == count
}
