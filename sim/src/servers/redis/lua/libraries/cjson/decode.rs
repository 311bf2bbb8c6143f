//! `cjson.decode`.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use std::ffi::{CStr, c_int};

use mlua::ffi::{self, lua_State};

use super::{Buffer, JsonOptions, fail, fail_argument, slot, text_argument};
use crate::servers::redis::number::strtod;

/// A decoding under work. Lua's stack has the last value on top and, below it, the tables around it, each
/// object with the key of its value.
struct Decoder<'a> {
    state: *mut lua_State,
    options: JsonOptions,
    json: &'a [u8],
    /// The position of the next byte.
    at: usize,
    /// The last text, without its escapes.
    text: Buffer<u8>,
    /// The tables around the value.
    levels: Buffer<Level>,
}

/// A table whose elements are being decoded.
#[derive(Clone, Copy)]
enum Level {
    /// The number of elements so far.
    Array(i32),
    Object,
}

/// A token, and its position.
#[derive(Clone, Copy)]
struct Token {
    kind: Kind,
    at: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// The text is in [`Decoder::text`].
    Text,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static CStr),
}

impl Kind {
    /// Returns its name in errors.
    fn name(self) -> &'static CStr {
        match self {
            Self::ObjectBegin => c"T_OBJ_BEGIN",
            Self::ObjectEnd => c"T_OBJ_END",
            Self::ArrayBegin => c"T_ARR_BEGIN",
            Self::ArrayEnd => c"T_ARR_END",
            Self::Text => c"T_STRING",
            Self::Number(_) => c"T_NUMBER",
            Self::Boolean(_) => c"T_BOOLEAN",
            Self::Null => c"T_NULL",
            Self::Colon => c"T_COLON",
            Self::Comma => c"T_COMMA",
            Self::End => c"T_END",
            Self::Error(text) => text,
        }
    }
}

/// `cjson.decode(text)`.
pub(super) unsafe extern "C-unwind" fn decode(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it. The text stays on the stack.
    unsafe {
        if ffi::lua_gettop(state) != 1 {
            fail_argument(state, 1, c"expected 1 argument");
        }
        let json = text_argument(state, 1);
        if json.len() >= 2 && (json[0] == 0 || json[1] == 0) {
            fail!(state, c"JSON parser does not support UTF-16 or UTF-32");
        }
        let text = Buffer::new(state, slot::TEXT);
        let levels = Buffer::new(state, slot::LEVELS);
        let mut decoder = Decoder { state, options: JsonOptions::of(state), json, at: 0, text, levels };
        decoder.run();
        decoder.text.free();
        1
    }
}

/// All methods *may throw*, and need what [`decode`] has set up.
impl Decoder<'_> {
    /// Pushes the value of the text, level by level, since it may have thousands.
    unsafe fn run(&mut self) {
        // SAFETY: for a level, `open` has asked for a slot for its table, one for its value and, in an
        // object, one for the key.
        unsafe {
            let mut token = self.token();
            loop {
                match token.kind {
                    Kind::ObjectBegin => {
                        self.open(Level::Object, 3);
                        token = self.token();
                        if !matches!(token.kind, Kind::ObjectEnd) {
                            token = self.key(token);
                            continue;
                        }
                        self.levels.pop();
                    }
                    Kind::ArrayBegin => {
                        self.open(Level::Array(0), 2);
                        token = self.token();
                        if !matches!(token.kind, Kind::ArrayEnd) {
                            continue;
                        }
                        self.levels.pop();
                    }
                    _ => self.push_scalar(token),
                }
                match self.store() {
                    Some(next) => token = next,
                    None => return,
                }
            }
        }
    }

    /// Stores the value on top in the table below it, and all tables that end behind it. Returns the first
    /// token of the next value, `None` at the end of the text.
    unsafe fn store(&mut self) -> Option<Token> {
        let state = self.state;
        // SAFETY: the tables and keys are on the stack, as `levels` says.
        unsafe {
            loop {
                let Some(level) = self.levels.last_mut() else {
                    let token = self.token();
                    if !matches!(token.kind, Kind::End) {
                        self.fail(c"the end", token);
                    }
                    return None;
                };
                let is_object = match level {
                    Level::Object => {
                        ffi::lua_rawset(state, -3);
                        true
                    }
                    Level::Array(count) => {
                        *count = count.wrapping_add(1);
                        ffi::lua_rawseti_(state, -2, *count);
                        false
                    }
                };
                let token = self.token();
                match (token.kind, is_object) {
                    (Kind::ObjectEnd, true) | (Kind::ArrayEnd, false) => self.levels.pop(),
                    (Kind::Comma, true) => {
                        let token = self.token();
                        return Some(self.key(token));
                    }
                    (Kind::Comma, false) => return Some(self.token()),
                    (_, true) => self.fail(c"comma or object end", token),
                    (_, false) => self.fail(c"comma or array end", token),
                }
            }
        }
    }

    /// Pushes the key `token`. Returns the token behind the colon.
    unsafe fn key(&mut self, token: Token) -> Token {
        // SAFETY: there is a slot for the key.
        unsafe {
            if !matches!(token.kind, Kind::Text) {
                self.fail(c"object key string", token);
            }
            self.push_scalar(token);
            let colon = self.token();
            if !matches!(colon.kind, Kind::Colon) {
                self.fail(c"colon", colon);
            }
            self.token()
        }
    }

    unsafe fn push_scalar(&mut self, token: Token) {
        let state = self.state;
        // SAFETY: there is a slot for the value.
        unsafe {
            match token.kind {
                Kind::Text => {
                    let text = self.text.elements();
                    ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
                }
                Kind::Number(number) => ffi::lua_pushnumber(state, number),
                Kind::Boolean(is_true) => ffi::lua_pushboolean(state, c_int::from(is_true)),
                Kind::Null => ffi::lua_pushlightuserdata(state, std::ptr::null_mut()),
                _ => self.fail(c"value", token),
            }
        }
    }

    /// Begins a table, with `slots` slots for it and its element.
    unsafe fn open(&mut self, level: Level, slots: i32) {
        let depth = i32::try_from(self.levels.length() + 1).unwrap_or(i32::MAX);
        // SAFETY: the slots are there before they are used.
        unsafe {
            if depth > self.options.decode_depth_max || ffi::lua_checkstack(self.state, slots) == 0 {
                let at = self.at as c_int;
                fail!(self.state, c"Found too many nested data structures (%d) at character %d", depth, at);
            }
            ffi::lua_createtable(self.state, 0, 0);
            self.levels.push(level);
        }
    }

    unsafe fn fail(&self, expected: &CStr, token: Token) -> ! {
        let (expected, found) = (expected.as_ptr(), token.kind.name().as_ptr());
        let at = token.at.wrapping_add(1) as c_int;
        // SAFETY: `decode` has set up the state.
        unsafe { fail!(self.state, c"Expected %s but found %s at character %d", expected, found, at) }
    }

    /// Returns a byte of the text. As in C, a zero follows it, and a zero in it ends it.
    fn byte(&self, at: usize) -> u8 {
        self.json.get(at).copied().unwrap_or(0)
    }

    /// Reads the next token.
    unsafe fn token(&mut self) -> Token {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let byte = self.byte(at);
        let single = match byte {
            b'{' => Kind::ObjectBegin,
            b'}' => Kind::ObjectEnd,
            b'[' => Kind::ArrayBegin,
            b']' => Kind::ArrayEnd,
            b',' => Kind::Comma,
            b':' => Kind::Colon,
            0 => return Token { kind: Kind::End, at },
            // SAFETY: `decode` has set up the buffer.
            b'"' => return unsafe { self.string() },
            b'-' | b'0'..=b'9' => {
                let is_refused = self.options.decodes_invalid == 0 && self.is_invalid_number();
                return if is_refused { self.error(c"invalid number") } else { self.number() };
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return self.word(),
            _ => return self.error(c"invalid token"),
        };
        self.at += 1;
        Token { kind: single, at }
    }

    fn word(&mut self) -> Token {
        let at = self.at;
        let rest = self.json.get(at..).unwrap_or_default();
        let words: [(&[u8], Kind); 3] =
            [(b"true", Kind::Boolean(true)), (b"false", Kind::Boolean(false)), (b"null", Kind::Null)];
        for (word, kind) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Token { kind, at };
            }
        }
        if self.options.decodes_invalid != 0 && self.is_invalid_number() {
            return self.number();
        }
        self.error(c"invalid token")
    }

    fn error(&self, text: &'static CStr) -> Token {
        Token { kind: Kind::Error(text), at: self.at }
    }

    fn number(&mut self) -> Token {
        let at = self.at;
        let rest = self.json.get(at..).unwrap_or_default();
        let (number, mut length) = strtod(rest);
        if length == 0 {
            return self.error(c"invalid number");
        }
        if number.is_nan() {
            length += payload_length(&rest[length..]);
        }
        self.at += length;
        Token { kind: Kind::Number(number), at }
    }

    /// Returns true for some of the numbers that C reads, but are not JSON.
    fn is_invalid_number(&self) -> bool {
        let mut at = self.at;
        match self.byte(at) {
            b'+' => return true,
            b'-' => at += 1,
            _ => {}
        }
        match self.byte(at) {
            b'0' => matches!(self.byte(at + 1), b'x' | b'X' | b'0'..=b'9'),
            // In C, bytes above 127 are negative.
            0..=b'9' | 128.. => false,
            _ => {
                let start = [0, 1, 2].map(|place| self.byte(at + place).to_ascii_lowercase());
                start == *b"inf" || start == *b"nan"
            }
        }
    }

    /// Reads a text into the buffer.
    unsafe fn string(&mut self) -> Token {
        let start = self.at;
        self.at += 1;
        self.text.clear();
        // SAFETY: `decode` has set up the buffer; the bytes are outside of it.
        unsafe {
            loop {
                let rest = self.json.get(self.at..).unwrap_or_default();
                let plain = rest.iter().take_while(|byte| !matches!(byte, 0 | b'"' | b'\\')).count();
                self.text.extend(&rest[..plain]);
                self.at += plain;
                match self.byte(self.at) {
                    b'"' => break,
                    0 => return self.error(c"unexpected end of string"),
                    _ => {}
                }
                let escaped = match self.byte(self.at + 1) {
                    byte @ (b'"' | b'\\' | b'/') => byte,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'u' => {
                        let Some((character, length)) = self.unicode() else {
                            return self.error(c"invalid unicode escape code");
                        };
                        self.text.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                        self.at += length;
                        continue;
                    }
                    _ => return self.error(c"invalid escape code"),
                };
                self.text.push(escaped);
                self.at += 2;
            }
        }
        self.at += 1;
        Token { kind: Kind::Text, at: start }
    }

    /// Returns the character of the escape `\u` at the position, and the length of the escape.
    fn unicode(&self) -> Option<(char, usize)> {
        let high = self.hexadecimal(self.at + 2)?;
        if let Some(character) = char::from_u32(high) {
            return Some((character, 6));
        }
        if high & 0x400 != 0 || self.byte(self.at + 6) != b'\\' || self.byte(self.at + 7) != b'u' {
            return None;
        }
        let low = self.hexadecimal(self.at + 8).filter(|low| low & 0xfc00 == 0xdc00)?;
        let character = char::from_u32(((high & 0x3ff) << 10 | low & 0x3ff) + 0x1_0000)?;
        Some((character, 12))
    }

    fn hexadecimal(&self, at: usize) -> Option<u32> {
        (at..at + 4).try_fold(0, |number, at| Some(number << 4 | char::from(self.byte(at)).to_digit(16)?))
    }
}

/// Returns the length of the payload behind `nan`, as in `nan(12)`, which C reads, too.
fn payload_length(rest: &[u8]) -> usize {
    let Some(inside) = rest.strip_prefix(b"(") else { return 0 };
    let length = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    if inside.get(length) == Some(&b')') { length + 2 } else { 0 }
}
