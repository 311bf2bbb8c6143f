//! `cmsgpack`: values as MessagePack. Source: `lua_cmsgpack.c` of Redis 7.0, lua-cmsgpack 0.4.0.

mod pack;
mod unpack;

use super::{Buffer, Functions, fail, fail_argument, int, look_behind_guard, reserve, slot, text_argument};

pub(super) const FUNCTIONS: &Functions = &[
    (c"pack", pack::pack),
    (c"unpack", unpack::unpack),
    (c"unpack_one", unpack::unpack_one),
    (c"unpack_limit", unpack::unpack_limit),
];

pub(super) const TEXTS: &[(&str, &str)] = &[
    ("_NAME", "cmsgpack"),
    ("_VERSION", "lua-cmsgpack 0.4.0"),
    ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
    ("_DESCRIPTION", "MessagePack C implementation for Lua"),
];

#[cfg(test)]
mod tests {
    use crate::servers::redis::lua::libraries::check;

    #[test]
    fn messages_are_those_of_a_live_server() {
        check(include_str!("cmsgpack.txt"));
    }
}
