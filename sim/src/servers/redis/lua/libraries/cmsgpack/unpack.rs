//! `cmsgpack.unpack` and its like.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use std::ffi::{CStr, c_int};

use mlua::ffi::{self, lua_State};

use super::{Buffer, fail, reserve, slot, text_argument};

const TOO_MANY: &CStr = c"too many return values at once; use unpack_one or unpack_limit instead.";

/// `cmsgpack.unpack(text)`: all values.
pub(super) unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { unpack_values(state, 0, 0) }
}

/// `cmsgpack.unpack_one(text, offset)`: the offset of the next value, and a value.
pub(super) unsafe extern "C-unwind" fn unpack_one(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        let offset = ffi::luaL_optinteger(state, 2, 0);
        ffi::lua_settop(state, 1.min(ffi::lua_gettop(state)));
        unpack_values(state, 1, offset)
    }
}

/// `cmsgpack.unpack_limit(text, limit, offset)`: the offset of the next value, and up to `limit` values.
pub(super) unsafe extern "C-unwind" fn unpack_limit(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        let limit = ffi::luaL_checkinteger(state, 2);
        let offset = ffi::luaL_optinteger(state, 3, 0);
        ffi::lua_settop(state, 1);
        unpack_values(state, limit, offset)
    }
}

/// Pushes up to `limit` values from `offset`, below them the offset behind them; without a limit and an
/// offset, only all values. Returns the number of results.
///
/// # Safety
///
/// `state` runs a function of this library; *may throw*.
unsafe fn unpack_values(state: *mut lua_State, limit: i64, offset: i64) -> i32 {
    // SAFETY: the caller's promise. The text stays on the stack.
    unsafe {
        let text = text_argument(state, 1);
        let is_all = limit == 0 && offset == 0;
        // C cuts both to 32 bits.
        let (at, length) = (offset as c_int, text.len() as c_int);
        if offset < 0 || limit < 0 {
            fail!(state, c"Invalid request to unpack with offset of %d and limit of %d.", at, length);
        }
        let Some(rest) = text.get(offset as usize..) else {
            fail!(state, c"Start offset %d greater than input length %d.", at, length);
        };
        let limit = if is_all { i64::from(c_int::MAX) } else { limit };
        let levels = Buffer::new(state, slot::LEVELS);
        let mut unpacker = Unpacker { state, rest, levels };
        let mut count: c_int = 0;
        while !unpacker.rest.is_empty() && i64::from(count) < limit {
            match unpacker.value() {
                Ok(()) => count += 1,
                Err(Flaw::Short) => fail!(state, c"Missing bytes in input."),
                Err(Flaw::Format) => fail!(state, c"Bad data format in input."),
            }
        }
        let rest = unpacker.rest.len();
        if !is_all {
            reserve(state, 1, c"in function mp_unpack_full");
            let next = if rest == 0 { -1 } else { (text.len() - rest) as i64 };
            ffi::lua_pushinteger(state, next);
            ffi::lua_insert(state, 2);
            count += 1;
        }
        count
    }
}

/// An unpacking under work. Lua's stack has the last value on top and, below it, the tables around it, each
/// with the key of its value.
struct Unpacker<'a> {
    state: *mut lua_State,
    rest: &'a [u8],
    /// The tables around the value.
    levels: Buffer<Level>,
}

/// A table whose elements are being unpacked: how many follow, after the one on the stack.
#[derive(Clone, Copy)]
enum Level {
    Array { left: usize, index: c_int },
    Map { left: usize, has_key: bool },
}

/// A flaw in MessagePack.
enum Flaw {
    Short,
    Format,
}

/// All methods *may throw*, and need what [`unpack_values`] has set up.
impl Unpacker<'_> {
    /// Pushes a value, level by level, since it may have thousands.
    unsafe fn value(&mut self) -> Result<(), Flaw> {
        // SAFETY: there is a slot for each value that is pushed.
        unsafe {
            loop {
                let mut is_new = self.begin()?;
                loop {
                    let Some(level) = self.levels.last_mut() else { return Ok(()) };
                    if Self::next(self.state, level, is_new) {
                        break;
                    }
                    self.levels.pop();
                    is_new = false;
                }
            }
        }
    }

    /// Stores the value on top in the table below it, unless the table `is_new` or the value is a key. Pushes
    /// the next index. Returns false at the end of the table.
    unsafe fn next(state: *mut lua_State, level: &mut Level, is_new: bool) -> bool {
        // SAFETY: the table, the key and the value are on the stack.
        unsafe {
            match level {
                Level::Array { left, index } => {
                    if !is_new {
                        ffi::lua_settable(state, -3);
                    }
                    if *left == 0 {
                        return false;
                    }
                    *left -= 1;
                    *index = index.wrapping_add(1);
                    ffi::lua_pushnumber(state, f64::from(*index));
                }
                Level::Map { has_key, .. } if !is_new && !*has_key => *has_key = true,
                Level::Map { left, has_key } => {
                    if !is_new {
                        ffi::lua_settable(state, -3);
                    }
                    *has_key = false;
                    if *left == 0 {
                        return false;
                    }
                    *left -= 1;
                }
            }
        }
        true
    }

    /// Pushes the next value, of a table only its beginning. Returns true if it is one.
    unsafe fn begin(&mut self) -> Result<bool, Flaw> {
        let state = self.state;
        let first = *self.rest.first().ok_or(Flaw::Short)?;
        // SAFETY: the slot is there before it is used.
        unsafe {
            reserve(state, 1, TOO_MANY);
            match first {
                0x00..=0x7f => self.integer(0, |_| i64::from(first))?,
                0x80..=0x8f => return self.open_map(0, usize::from(first & 15)),
                0x90..=0x9f => return self.open_array(0, usize::from(first & 15)),
                0xa0..=0xbf => self.text(0, usize::from(first & 31))?,
                0xc0 => {
                    self.take(1)?;
                    ffi::lua_pushnil(state);
                }
                0xc2 | 0xc3 => {
                    self.take(1)?;
                    ffi::lua_pushboolean(state, c_int::from(first == 0xc3));
                }
                0xca => {
                    let bits = self.unsigned(4)? as u32;
                    self.take(5)?;
                    ffi::lua_pushnumber(state, f64::from(f32::from_bits(bits)));
                }
                0xcb => {
                    let bits = self.unsigned(8)?;
                    self.take(9)?;
                    ffi::lua_pushnumber(state, f64::from_bits(bits));
                }
                0xcc => self.integer(1, u64::cast_signed)?,
                0xcd => self.integer(2, u64::cast_signed)?,
                0xce => self.integer(4, u64::cast_signed)?,
                0xcf | 0xd3 => self.integer(8, u64::cast_signed)?,
                0xd0 => self.integer(1, |number| i64::from(number as i8))?,
                0xd1 => self.integer(2, |number| i64::from(number as i16))?,
                0xd2 => self.integer(4, |number| i64::from(number as i32))?,
                0xd9 => self.text_of(1)?,
                0xda => self.text_of(2)?,
                0xdb => self.text_of(4)?,
                0xdc => return self.open_array(2, 0),
                0xdd => return self.open_array(4, 0),
                0xde => return self.open_map(2, 0),
                0xdf => return self.open_map(4, 0),
                0xe0..=0xff => self.integer(0, |_| i64::from(first.cast_signed()))?,
                _ => return Err(Flaw::Format),
            }
        }
        Ok(false)
    }

    /// Reads the number in the `bytes` behind the first byte.
    fn unsigned(&self, bytes: usize) -> Result<u64, Flaw> {
        let bytes = self.rest.get(1..1 + bytes).ok_or(Flaw::Short)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn take(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.rest = self.rest.get(bytes..).ok_or(Flaw::Short)?;
        Ok(())
    }

    unsafe fn integer(&mut self, bytes: usize, converted: impl FnOnce(u64) -> i64) -> Result<(), Flaw> {
        let number = converted(self.unsigned(bytes)?);
        self.take(1 + bytes)?;
        // SAFETY: there is a slot.
        unsafe { ffi::lua_pushnumber(self.state, number as f64) };
        Ok(())
    }

    /// Pushes the text whose length is in the `bytes` behind the first byte.
    unsafe fn text_of(&mut self, bytes: usize) -> Result<(), Flaw> {
        let length = self.unsigned(bytes)? as usize;
        // SAFETY: the caller's promise.
        unsafe { self.text(bytes, length) }
    }

    /// Pushes the text of `length` bytes behind the first byte and `bytes` more.
    unsafe fn text(&mut self, bytes: usize, length: usize) -> Result<(), Flaw> {
        let start = 1 + bytes;
        let text = self.rest.get(start..start.saturating_add(length)).ok_or(Flaw::Short)?;
        // SAFETY: there is a slot.
        unsafe { ffi::lua_pushlstring_(self.state, text.as_ptr().cast(), length) };
        self.take(start + length)
    }

    /// Begins an array of `length` elements; if there are `bytes` behind the first byte, they have the
    /// length.
    unsafe fn open_array(&mut self, bytes: usize, length: usize) -> Result<bool, Flaw> {
        let left = length | self.unsigned(bytes)? as usize;
        self.take(1 + bytes)?;
        // SAFETY: there is a slot for the table; the next one is for the index of an element.
        unsafe {
            self.levels.push(Level::Array { left, index: 0 });
            ffi::lua_createtable(self.state, 0, 0);
            reserve(self.state, 1, c"in function mp_decode_to_lua_array");
        }
        Ok(true)
    }

    /// Begins a map, as [`open_array`](Self::open_array) does an array.
    unsafe fn open_map(&mut self, bytes: usize, length: usize) -> Result<bool, Flaw> {
        let left = length | self.unsigned(bytes)? as usize;
        self.take(1 + bytes)?;
        // SAFETY: there is a slot for the table.
        unsafe {
            self.levels.push(Level::Map { left, has_key: false });
            ffi::lua_createtable(self.state, 0, 0);
        }
        Ok(true)
    }
}
