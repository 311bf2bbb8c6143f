//! The upvalues of every function of these libraries.

use mlua::ffi::lua_upvalueindex;

/// The options of `cjson`: the running engine, whose server has them, or the block of memory that `cjson.new`
/// has made.
pub(super) const OPTIONS: i32 = lua_upvalueindex(1);
/// The contents of the tables that `sandbox.lua` guards.
pub(super) const CONTENTS: i32 = lua_upvalueindex(2);
/// The memory of the text under work.
pub(super) const TEXT: i32 = lua_upvalueindex(3);
/// The memory of the nested tables under work.
pub(super) const LEVELS: i32 = lua_upvalueindex(4);
pub(super) const COUNT: i32 = 4;
