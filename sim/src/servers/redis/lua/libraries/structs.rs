//! `struct`: packs values into bytes, and unpacks them. Source: `lua_struct.c` of Redis 7.0.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};

use super::{Buffer, Functions, fail, fail_argument, reserve, slot, text_argument, unsigned};

pub(super) const FUNCTIONS: &Functions = &[(c"pack", pack), (c"unpack", unpack), (c"size", size)];

/// The largest size of an integer in bytes.
const INTEGER_MAX: usize = 32;
/// The alignment of `!` without a number.
const ALIGNMENT: i32 = 8;

/// The format of a call, and the options that it has set so far.
struct Format<'a> {
    state: *mut lua_State,
    rest: &'a [u8],
    is_big_endian: bool,
    alignment: usize,
}

/// A letter of a format, the size of its value in bytes, and the zeros before the value.
struct Item {
    letter: u8,
    size: usize,
    padding: usize,
}

impl Format<'_> {
    /// Reads the format in the first argument.
    ///
    /// # Safety
    ///
    /// `state` runs a function of this library; this and all other methods *may throw*.
    unsafe fn new(state: *mut lua_State) -> Self {
        // SAFETY: the caller's promise.
        let text = unsafe { text_argument(state, 1) };
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Self { state, rest: &text[..end], is_big_endian: false, alignment: 1 }
    }

    /// Reads the next item. `position` is the number of bytes before it.
    ///
    /// # Safety
    ///
    /// The promise of [`new`](Self::new).
    unsafe fn next(&mut self, position: usize) -> Option<Item> {
        let (letter, rest) = self.rest.split_first()?;
        self.rest = rest;
        // SAFETY: the caller's promise.
        let size = unsafe { self.size(*letter) };
        // As in C, also for sizes that are no power of two.
        let unit = size.min(self.alignment);
        let padding = match (size, *letter) {
            (0, _) | (_, b'c') => 0,
            _ => unit.wrapping_sub(position & (unit - 1)) & (unit - 1),
        };
        Some(Item { letter: *letter, size, padding })
    }

    unsafe fn size(&mut self, letter: u8) -> usize {
        // SAFETY: the promise of `new`.
        unsafe {
            match letter {
                b'B' | b'b' | b'x' => 1,
                b'H' | b'h' => 2,
                b'f' => 4,
                b'L' | b'l' | b'T' | b'd' => 8,
                b'c' => self.number(1) as usize,
                b'i' | b'I' => {
                    let size = self.number(4);
                    if size as usize > INTEGER_MAX {
                        let limit = INTEGER_MAX as c_int;
                        fail!(self.state, c"integral size %d is larger than limit of %d", size, limit);
                    }
                    size as usize
                }
                _ => 0,
            }
        }
    }

    /// Reads a number, which is not negative.
    unsafe fn number(&mut self, default: i32) -> c_int {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return default;
        }
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let mut number: c_int = 0;
        for digit in digits {
            let next = number.checked_mul(10).and_then(|tens| tens.checked_add(c_int::from(digit - b'0')));
            match next {
                Some(next) => number = next,
                // SAFETY: the promise of `new`.
                None => unsafe { fail!(self.state, c"integral size overflow") },
            }
        }
        number
    }

    /// Obeys a letter that stands for no value.
    ///
    /// # Safety
    ///
    /// The promise of [`new`](Self::new).
    unsafe fn control(&mut self, letter: u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match letter {
                b' ' => {}
                b'>' => self.is_big_endian = true,
                b'<' => self.is_big_endian = false,
                b'!' => {
                    let alignment = self.number(ALIGNMENT);
                    if alignment.count_ones() != 1 {
                        fail!(self.state, c"alignment %d is not a power of 2", alignment);
                    }
                    self.alignment = alignment as usize;
                }
                letter => {
                    let letter = c_int::from(letter);
                    ffi::lua_settop(self.state, 0);
                    let text =
                        ffi::lua_pushfstring(self.state, c"invalid format option '%c'".as_ptr(), letter);
                    ffi::luaL_argerror(self.state, 1, text);
                }
            }
        }
    }

    /// Reverses `bytes`, which are little-endian, if the format asks for big-endian ones.
    fn order(&self, bytes: &mut [u8]) {
        if self.is_big_endian {
            bytes.reverse();
        }
    }
}

/// `struct.pack(format, value, ...)`.
unsafe extern "C-unwind" fn pack(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it. The text under work is in the upvalue.
    unsafe {
        let mut format = Format::new(state);
        // As in C, a missing argument is nil.
        ffi::lua_pushnil(state);
        let mut out = Buffer::new(state, slot::TEXT);
        let mut argument = 2;
        let mut position = 0usize;
        while let Some(Item { letter, mut size, padding }) = format.next(position) {
            position = position.wrapping_add(padding);
            out.extend(&[0; INTEGER_MAX][..padding.min(INTEGER_MAX)]);
            match letter {
                b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                    let mut bytes = [0; INTEGER_MAX];
                    let number = ffi::luaL_checknumber(state, argument);
                    bytes[..8].copy_from_slice(&unsigned(number).to_le_bytes());
                    format.order(&mut bytes[..size]);
                    out.extend(&bytes[..size]);
                    argument += 1;
                }
                b'x' => out.push(0),
                b'f' => {
                    let mut bytes = (ffi::luaL_checknumber(state, argument) as f32).to_le_bytes();
                    format.order(&mut bytes);
                    out.extend(&bytes);
                    argument += 1;
                }
                b'd' => {
                    let mut bytes = ffi::luaL_checknumber(state, argument).to_le_bytes();
                    format.order(&mut bytes);
                    out.extend(&bytes);
                    argument += 1;
                }
                b'c' | b's' => {
                    let text = text_argument(state, argument);
                    argument += 1;
                    if size == 0 {
                        size = text.len();
                    }
                    match text.get(..size) {
                        Some(text) => out.extend(text),
                        // It names the next argument, as in C.
                        None => fail_argument(state, argument, c"string too short"),
                    }
                    if letter == b's' {
                        out.push(0);
                        size += 1;
                    }
                }
                letter => format.control(letter),
            }
            position = position.wrapping_add(size);
        }
        out.push_text();
        1
    }
}

/// `struct.unpack(format, data, position)`: the values, and the position after them.
unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        let mut format = Format::new(state);
        let data = text_argument(state, 2);
        let position = ffi::luaL_optinteger(state, 3, 1);
        if position == 0 {
            fail_argument(state, 3, c"offset must be 1 or greater");
        }
        let mut position = position.wrapping_sub(1) as usize;
        let mut count = 0;
        while let Some(Item { letter, size, padding }) = format.next(position) {
            position = position.wrapping_add(padding);
            let rest = data_at(state, data, position, size);
            reserve(state, 2, c"too many results");
            let taken = unpack_value(&mut format, letter, &rest[..size], rest, &mut count);
            position = position.wrapping_add(taken);
        }
        ffi::lua_pushinteger(state, position.wrapping_add(1) as i64);
        count + 1
    }
}

/// Returns the bytes from `position`, at least `size`.
///
/// # Safety
///
/// `state` runs a function of this library; *may throw*.
unsafe fn data_at(state: *mut lua_State, data: &[u8], position: usize, size: usize) -> &[u8] {
    match data.get(position..).filter(|rest| rest.len() >= size) {
        Some(rest) => rest,
        // SAFETY: the caller's promise.
        None => unsafe { fail_argument(state, 2, c"data string too short") },
    }
}

/// Pushes the value of one item: `bytes`, the first of `rest`, or more of it. Counts the values on the stack,
/// and returns the number of bytes.
///
/// # Safety
///
/// The promise of [`Format::new`]; *may throw*.
unsafe fn unpack_value(
    format: &mut Format<'_>,
    letter: u8,
    bytes: &[u8],
    rest: &[u8],
    count: &mut i32,
) -> usize {
    let state = format.state;
    // SAFETY: the caller's promise. There is room on the stack for two more.
    unsafe {
        match letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = integer(bytes, format.is_big_endian, letter.is_ascii_lowercase());
                ffi::lua_pushnumber(state, number);
            }
            b'f' => {
                let mut copy = [0; 4];
                copy.copy_from_slice(bytes);
                format.order(&mut copy);
                ffi::lua_pushnumber(state, f64::from(f32::from_le_bytes(copy)));
            }
            b'd' => {
                let mut copy = [0; 8];
                copy.copy_from_slice(bytes);
                format.order(&mut copy);
                ffi::lua_pushnumber(state, f64::from_le_bytes(copy));
            }
            b'c' => {
                let mut size = bytes.len();
                if size == 0 {
                    if *count == 0 || ffi::lua_isnumber(state, -1) == 0 {
                        fail!(state, c"format 'c0' needs a previous size");
                    }
                    size = unsigned(ffi::lua_tonumber(state, -1)) as usize;
                    ffi::lua_settop(state, -2);
                    *count -= 1;
                }
                let text = data_at(state, rest, 0, size);
                ffi::lua_pushlstring_(state, text.as_ptr().cast(), size);
                *count += 1;
                return size;
            }
            b's' => {
                let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                    fail!(state, c"unfinished string in data");
                };
                ffi::lua_pushlstring_(state, rest.as_ptr().cast(), end);
                *count += 1;
                return end + 1;
            }
            b'x' => return 1,
            letter => {
                format.control(letter);
                return bytes.len();
            }
        }
    }
    *count += 1;
    bytes.len()
}

/// Reads an integer as C does: its lowest 64 bits. The sign of a larger one is extended from the bit to which
/// the processor shifts.
fn integer(bytes: &[u8], is_big_endian: bool, is_signed: bool) -> f64 {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    let number = if is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
    if !is_signed {
        return number as f64;
    }
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32).wrapping_mul(8).wrapping_sub(1));
    let extended = if number & mask == 0 { number } else { number | mask };
    extended.cast_signed() as f64
}

/// `struct.size(format)`.
unsafe extern "C-unwind" fn size(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        let mut format = Format::new(state);
        let mut position = 0usize;
        while let Some(Item { letter, size, padding }) = format.next(position) {
            match letter {
                b's' => fail_argument(state, 1, c"option 's' has no fixed size"),
                b'c' if size == 0 => fail_argument(state, 1, c"option 'c0' has no fixed size"),
                // Unknown letters are ignored, as in C.
                letter if letter.is_ascii_alphanumeric() => {}
                letter => format.control(letter),
            }
            position = position.wrapping_add(padding).wrapping_add(size);
        }
        ffi::lua_pushinteger(state, position as i64);
        1
    }
}

#[cfg(test)]
mod tests {
    use crate::servers::redis::lua::libraries::check;

    #[test]
    fn structs_are_those_of_a_live_server() {
        check(include_str!("structs.txt"));
    }
}
