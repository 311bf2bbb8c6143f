//! `cjson`: values as JSON texts. Source: `lua_cjson.c` of Redis 7.0, CJSON 2.1.0.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

mod decode;
mod encode;
mod number;
mod options;

use mlua::ffi::{self, lua_State};

use super::{Buffer, Functions, fail, fail_argument, int, look_behind_guard, slot, text_argument};
use crate::servers::redis::json_options::JsonOptions;

pub(super) const FUNCTIONS: &Functions = &[
    (c"encode", encode::encode),
    (c"decode", decode::decode),
    (c"encode_sparse_array", options::encode_sparse_array),
    (c"encode_max_depth", options::encode_max_depth),
    (c"decode_max_depth", options::decode_max_depth),
    (c"encode_number_precision", options::encode_number_precision),
    (c"encode_keep_buffer", options::encode_keep_buffer),
    (c"encode_invalid_numbers", options::encode_invalid_numbers),
    (c"decode_invalid_numbers", options::decode_invalid_numbers),
    (c"new", new),
];

pub(super) const TEXTS: &[(&str, &str)] = &[("_NAME", "cjson"), ("_VERSION", "2.1.0")];

/// `cjson.new()`: the library once more, with options of its own, which are the initial ones.
unsafe extern "C-unwind" fn new(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it. The options are in a block of Lua's memory, which is large enough, and an upvalue
    // of the new functions.
    unsafe {
        // Two results, and the upvalues of a function.
        ffi::luaL_checkstack_(state, 8, c"a library".as_ptr());
        ffi::lua_createtable(state, 0, 0);
        let options = ffi::lua_newuserdata(state, size_of::<JsonOptions>()).cast::<JsonOptions>();
        options.write(JsonOptions::default());
        for (name, function) in FUNCTIONS {
            ffi::lua_pushvalue(state, -1);
            ffi::lua_pushvalue(state, slot::CONTENTS);
            ffi::lua_pushboolean(state, 0);
            ffi::lua_pushboolean(state, 0);
            ffi::lua_pushcclosure(state, *function, slot::COUNT);
            ffi::lua_setfield(state, -3, name.as_ptr());
        }
        ffi::lua_settop(state, -2);
        ffi::lua_pushlightuserdata(state, std::ptr::null_mut());
        ffi::lua_setfield(state, -2, c"null".as_ptr());
        for (name, text) in TEXTS {
            ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
            ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
            ffi::lua_rawset(state, -3);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use crate::servers::redis::lua::libraries::check;

    #[test]
    fn json_is_that_of_a_live_server() {
        check(include_str!("cjson.txt"));
    }
}
