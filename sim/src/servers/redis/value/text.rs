//! Strings, with what OBJECT tells of them. Source: `object.c` of Redis 7.0.

use std::sync::Arc;

use crate::servers::redis::number::parse_i64;

/// The longest string that Redis stores together with its header, in bytes.
const EMBEDDED_BYTES_MAX: usize = 44;
/// The longest string that may be stored as an integer, in bytes.
const INTEGER_BYTES_MAX: usize = 20;
/// Integers below this are shared by all keys.
const SHARED_INTEGERS: i64 = 10_000;

/// A string.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) form: Form,
}

/// The encoding in which Redis stores a string, as far as the text does not decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As SET stores it: the shortest encoding.
    Usual,
    /// As COPY stores it: an integer is not shared.
    Copied,
    /// As INCRBYFLOAT stores it: never an integer.
    Characters,
    /// As APPEND and SETRANGE store it: never an integer, and never in one piece with its header.
    Raw,
}

impl Text {
    /// Returns the form of a copy.
    pub(crate) fn copied(&self) -> Self {
        let form = if self.form == Form::Usual { Form::Copied } else { self.form };
        Self { bytes: self.bytes.clone(), form }
    }

    pub(super) fn encoding(&self) -> &'static str {
        match self.form {
            Form::Raw => "raw",
            Form::Usual | Form::Copied if self.integer().is_some() => "int",
            _ if self.bytes.len() <= EMBEDDED_BYTES_MAX => "embstr",
            _ => "raw",
        }
    }

    /// Returns the number of references that Redis counts.
    pub(crate) fn references(&self) -> i64 {
        let is_shared = |number| (0..SHARED_INTEGERS).contains(&number);
        let is_integer = self.form == Form::Usual && self.integer().is_some_and(is_shared);
        if is_integer { i64::from(i32::MAX) } else { 1 }
    }

    fn integer(&self) -> Option<i64> {
        parse_i64(&self.bytes).filter(|_| self.bytes.len() <= INTEGER_BYTES_MAX)
    }
}
