//! The options of `cjson`, and the functions that read and set them.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use std::ffi::{CStr, c_char};
use std::sync::Mutex;

use mlua::ffi::{self, lua_State};

use super::{fail_argument, slot};
use crate::servers::redis::json_options::JsonOptions;
use crate::servers::redis::lua::{Running, lock};

impl JsonOptions {
    /// Returns the options of the running function's library.
    ///
    /// # Safety
    ///
    /// `state` runs a function of `cjson`.
    pub(super) unsafe fn of(state: *mut lua_State) -> Self {
        let mut copy = Self::default();
        // SAFETY: the caller's promise.
        unsafe { Self::with(state, |options| copy = *options) };
        copy
    }

    /// Calls `used` with the options of the running function's library. Never throws, nor may `used`.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn with(state: *mut lua_State, used: impl FnOnce(&mut Self)) {
        // SAFETY: the upvalue is the engine's `Running`, which is alive, or the block that `cjson.new` has
        // made, to which nothing else refers now.
        unsafe {
            let options = ffi::lua_touserdata(state, slot::OPTIONS);
            if ffi::lua_type(state, slot::OPTIONS) == ffi::LUA_TLIGHTUSERDATA {
                used(&mut lock(&*options.cast::<Mutex<Running>>()).state.json);
            } else {
                used(&mut *options.cast::<Self>());
            }
        }
    }
}

/// An option.
type Field = fn(&mut JsonOptions) -> &mut i32;

/// Fills the arguments up to `count` with nil, and refuses more.
///
/// # Safety
///
/// `state` runs a function of `cjson`; *may throw*.
unsafe fn fill_arguments(state: *mut lua_State, count: i32) {
    // SAFETY: the caller's promise.
    unsafe {
        if ffi::lua_gettop(state) > count {
            fail_argument(state, count + 1, c"found too many arguments");
        }
        ffi::lua_settop(state, count);
    }
}

/// Sets an option to an argument, a number within a range, unless the argument is nil. Pushes the option.
///
/// # Safety
///
/// As for [`fill_arguments`].
unsafe fn number(state: *mut lua_State, argument: i32, field: Field, (min, max): (i32, i32)) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        if ffi::lua_type(state, argument) != ffi::LUA_TNIL {
            // C cuts the number to 32 bits.
            let value = ffi::luaL_checkinteger(state, argument) as i32;
            if !(min..=max).contains(&value) {
                let text =
                    ffi::lua_pushfstring(state, c"expected integer between %d and %d".as_ptr(), min, max);
                ffi::luaL_argerror(state, 1, text);
            }
            JsonOptions::with(state, |options| *field(options) = value);
        }
        ffi::lua_pushinteger(state, i64::from(*field(&mut JsonOptions::of(state))));
    }
    1
}

/// Sets an option to an argument, a boolean or one of `names`, unless the argument is nil. Pushes the option.
///
/// # Safety
///
/// As for [`fill_arguments`].
unsafe fn choice(state: *mut lua_State, argument: i32, field: Field, names: &[&CStr]) -> i32 {
    // SAFETY: the caller's promise. The list of names ends with a null pointer.
    unsafe {
        match ffi::lua_type(state, argument) {
            ffi::LUA_TNIL => {}
            ffi::LUA_TBOOLEAN => {
                let is_on = ffi::lua_toboolean(state, argument);
                JsonOptions::with(state, |options| *field(options) = is_on);
            }
            _ => {
                let mut list = [std::ptr::null::<c_char>(); 4];
                for (place, name) in list.iter_mut().zip(names) {
                    *place = name.as_ptr();
                }
                let chosen = ffi::luaL_checkoption(state, argument, std::ptr::null(), list.as_ptr());
                JsonOptions::with(state, |options| *field(options) = chosen);
            }
        }
        let value = *field(&mut JsonOptions::of(state));
        match names.get(value as usize) {
            Some(name) if value > 1 => ffi::lua_pushstring_(state, name.as_ptr()),
            _ => ffi::lua_pushboolean(state, value),
        }
    }
    1
}

const SWITCH: &[&CStr] = &[c"off", c"on"];

pub(super) unsafe extern "C-unwind" fn encode_sparse_array(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 3);
        choice(state, 1, |options| &mut options.converts_sparse, SWITCH);
        number(state, 2, |options| &mut options.sparse_ratio, (0, i32::MAX));
        number(state, 3, |options| &mut options.sparse_safe, (0, i32::MAX));
    }
    3
}

pub(super) unsafe extern "C-unwind" fn encode_max_depth(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 1);
        number(state, 1, |options| &mut options.encode_depth_max, (1, i32::MAX))
    }
}

pub(super) unsafe extern "C-unwind" fn decode_max_depth(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 1);
        number(state, 1, |options| &mut options.decode_depth_max, (1, i32::MAX))
    }
}

pub(super) unsafe extern "C-unwind" fn encode_number_precision(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 1);
        number(state, 1, |options| &mut options.precision, (1, 14))
    }
}

pub(super) unsafe extern "C-unwind" fn encode_keep_buffer(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 1);
        choice(state, 1, |options| &mut options.keeps_buffer, SWITCH)
    }
}

pub(super) unsafe extern "C-unwind" fn encode_invalid_numbers(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 1);
        choice(state, 1, |options| &mut options.encodes_invalid, &[c"off", c"on", c"null"])
    }
}

pub(super) unsafe extern "C-unwind" fn decode_invalid_numbers(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        fill_arguments(state, 1);
        choice(state, 1, |options| &mut options.decodes_invalid, SWITCH)
    }
}
