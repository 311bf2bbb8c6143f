//! `cjson.encode`.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use std::ffi::CStr;

use mlua::ffi::{self, lua_State};

use super::number::Short;
use super::{Buffer, JsonOptions, fail, fail_argument, int, look_behind_guard, slot};
use crate::servers::redis::lua::stack;

/// An encoding under work. Lua's stack has the value that is encoded next on top and, below it, the tables
/// around it, each object with the key of its value.
struct Encoder {
    state: *mut lua_State,
    options: JsonOptions,
    out: Buffer<u8>,
    /// The tables around the value.
    levels: Buffer<Level>,
}

/// A table whose elements are being encoded.
#[derive(Clone, Copy)]
enum Level {
    /// The index of the element on the stack, and the largest index.
    Array {
        index: i32,
        length: i32,
    },
    Object,
}

/// `cjson.encode(value)`.
pub(super) unsafe extern "C-unwind" fn encode(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        if ffi::lua_gettop(state) != 1 {
            fail_argument(state, 1, c"expected 1 argument");
        }
        let out = Buffer::new(state, slot::TEXT);
        let levels = Buffer::new(state, slot::LEVELS);
        let mut encoder = Encoder { state, options: JsonOptions::of(state), out, levels };
        encoder.run();
        encoder.out.push_text();
        1
    }
}

/// All methods *may throw*, and need what [`encode`] has set up.
impl Encoder {
    /// Encodes the value on the stack, level by level, since a table may have thousands.
    unsafe fn run(&mut self) {
        // SAFETY: for a level, `open` has asked for a slot for its key, one for its value and one more.
        unsafe {
            loop {
                let mut is_new = self.value();
                loop {
                    let Some(level) = self.levels.last_mut() else { return };
                    let has_next = match level {
                        Level::Array { index, length } => {
                            *index += 1;
                            let (index, length) = (*index, *length);
                            self.next_element(index, length, is_new)
                        }
                        Level::Object => self.next_field(is_new),
                    };
                    if has_next {
                        break;
                    }
                    self.levels.pop();
                    is_new = false;
                }
            }
        }
    }

    /// Encodes the value on top, except the contents of a table. Returns true if it is one.
    unsafe fn value(&mut self) -> bool {
        let state = self.state;
        // SAFETY: each function is called for the type that it is for.
        unsafe {
            match ffi::lua_type(state, -1) {
                ffi::LUA_TSTRING => self.text(stack::text(state, -1)),
                ffi::LUA_TNUMBER => self.number(-1),
                ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, -1) != 0 => self.out.extend(b"true"),
                ffi::LUA_TBOOLEAN => self.out.extend(b"false"),
                ffi::LUA_TNIL => self.out.extend(b"null"),
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(state, -1).is_null() => {
                    self.out.extend(b"null");
                }
                ffi::LUA_TTABLE => {
                    self.open();
                    return true;
                }
                _ => self.refuse(-1, c"type not supported"),
            }
            false
        }
    }

    /// Begins the table on top.
    unsafe fn open(&mut self) {
        let depth = i32::try_from(self.levels.length() + 1).unwrap_or(i32::MAX);
        // SAFETY: the slots are there before they are used.
        unsafe {
            if depth > self.options.encode_depth_max || ffi::lua_checkstack(self.state, 3) == 0 {
                fail!(self.state, c"Cannot serialise, excessive nesting (%d)", depth);
            }
            look_behind_guard(self.state);
            let length = self.array_length();
            if length > 0 {
                self.out.push(b'[');
                self.levels.push(Level::Array { index: 0, length });
            } else {
                self.out.push(b'{');
                self.levels.push(Level::Object);
            }
        }
    }

    /// Returns the length of the array on top, or another number for a table that becomes an object.
    unsafe fn array_length(&mut self) -> i32 {
        let (mut largest, mut count) = (0, 0i32);
        let state = self.state;
        // SAFETY: there are two slots for the key and the value.
        unsafe {
            ffi::lua_pushnil(state);
            while ffi::lua_next(state, -2) != 0 {
                let is_number = ffi::lua_type(state, -2) == ffi::LUA_TNUMBER;
                let key = if is_number { ffi::lua_tonumber(state, -2) } else { 0.0 };
                if key < 1.0 || key.floor() < key {
                    ffi::lua_settop(state, -3);
                    return -1;
                }
                // C overflows for keys that are no `int`, which then count as the smallest.
                if key > f64::from(largest) {
                    largest = int(key);
                }
                count += 1;
                ffi::lua_settop(state, -2);
            }
        }
        let JsonOptions { sparse_ratio, sparse_safe, converts_sparse, .. } = self.options;
        let is_sparse =
            sparse_ratio > 0 && largest > count.wrapping_mul(sparse_ratio) && largest > sparse_safe;
        match is_sparse {
            false => largest,
            true if converts_sparse != 0 => -1,
            // SAFETY: the table is on top again.
            true => unsafe { self.refuse(-1, c"excessively sparse array") },
        }
    }

    /// Pushes the element at `index` of the array on top or, unless it `is_new`, below the last element,
    /// which is popped. Returns false at the end.
    unsafe fn next_element(&mut self, index: i32, length: i32, is_new: bool) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            if !is_new {
                ffi::lua_settop(self.state, -2);
            }
            if index > length {
                self.out.push(b']');
                return false;
            }
            if !is_new {
                self.out.push(b',');
            }
            ffi::lua_rawgeti_(self.state, -1, index);
        }
        true
    }

    /// Pushes the next key and value of the table on top or, unless it `is_new`, below the last key and
    /// value. Encodes the key. Pops both and returns false at the end.
    unsafe fn next_field(&mut self, is_new: bool) -> bool {
        let state = self.state;
        // SAFETY: the caller's promise.
        unsafe {
            if is_new {
                ffi::lua_pushnil(state);
            } else {
                ffi::lua_settop(state, -2);
            }
            if ffi::lua_next(state, -2) == 0 {
                self.out.push(b'}');
                return false;
            }
            if !is_new {
                self.out.push(b',');
            }
            match ffi::lua_type(state, -2) {
                ffi::LUA_TNUMBER => {
                    self.out.push(b'"');
                    self.number(-2);
                    self.out.extend(b"\":");
                }
                ffi::LUA_TSTRING => {
                    self.text(stack::text(state, -2));
                    self.out.push(b':');
                }
                _ => self.refuse(-2, c"table key must be a number or string"),
            }
        }
        true
    }

    unsafe fn number(&mut self, index: i32) {
        // SAFETY: the caller has seen a number.
        unsafe {
            let number = ffi::lua_tonumber(self.state, index);
            match self.options.encodes_invalid {
                0 if !number.is_finite() => self.refuse(index, c"must not be NaN or Inf"),
                1 if number.is_nan() => return self.out.extend(b"nan"),
                2 if !number.is_finite() => return self.out.extend(b"null"),
                _ => {}
            }
            self.out.extend(Short::of(number, self.options.precision as usize).bytes());
        }
    }

    unsafe fn text(&mut self, text: &[u8]) {
        let mut rest = text;
        // SAFETY: the text is on Lua's stack, outside of the buffer.
        unsafe {
            self.out.push(b'"');
            while let Some(at) = rest.iter().position(|byte| must_be_escaped(*byte)) {
                let byte = rest[at];
                self.out.extend(&rest[..at]);
                self.escape(byte);
                rest = &rest[at + 1..];
            }
            self.out.extend(rest);
            self.out.push(b'"');
        }
    }

    unsafe fn escape(&mut self, byte: u8) {
        let short = match byte {
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' | b'/' => byte,
            _ => 0,
        };
        let digits = b"0123456789abcdef";
        let [high, low] = [byte >> 4, byte & 15].map(|digit| digits[usize::from(digit)]);
        // SAFETY: the caller's promise.
        unsafe {
            match short {
                0 => self.out.extend(&[b'\\', b'u', b'0', b'0', high, low]),
                short => self.out.extend(&[b'\\', short]),
            }
        }
    }

    unsafe fn refuse(&self, index: i32, reason: &CStr) -> ! {
        // SAFETY: there is a value at `index`.
        unsafe {
            let kind = ffi::lua_typename(self.state, ffi::lua_type(self.state, index));
            fail!(self.state, c"Cannot serialise %s: %s", kind, reason.as_ptr())
        }
    }
}

fn must_be_escaped(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | b'"' | b'/' | b'\\' | 0x7f)
}
