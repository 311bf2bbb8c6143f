//! Replies, as commands return them and as they go over the wire (RESP2).

use std::borrow::Cow;
use std::sync::Arc;

use super::number::push_i64;

/// The answer to one command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// `+OK`.
    Status(Cow<'static, [u8]>),
    /// `-ERR …`: the code and the message.
    Error(Cow<'static, [u8]>),
    /// `:1`.
    Integer(i64),
    /// `$3`: any bytes.
    Bulk(Arc<[u8]>),
    /// `$-1`: there is none.
    Nil,
    /// `*-1`: a transaction that was not carried out.
    NilArray,
    /// `*2`.
    Array(Vec<Reply>),
    /// Nothing goes out: the connection has become something else.
    Silence,
}

impl Reply {
    pub(crate) const OK: Reply = Reply::Status(Cow::Borrowed(b"OK"));

    pub(crate) fn status(text: &'static str) -> Self {
        Self::Status(Cow::Borrowed(text.as_bytes()))
    }

    pub(crate) fn error(text: &'static str) -> Self {
        Self::Error(Cow::Borrowed(text.as_bytes()))
    }

    pub(crate) fn error_text(text: impl Into<Vec<u8>>) -> Self {
        Self::Error(Cow::Owned(text.into()))
    }

    pub(crate) fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().into())
    }

    pub(crate) fn count(number: usize) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Appends the reply as it goes over the wire.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Status(text) => push_line(out, b'+', text),
            Self::Error(text) => push_line(out, b'-', text),
            Self::Integer(number) => push_header(out, b':', *number),
            Self::Bulk(bytes) => push_bulk(out, bytes),
            Self::NilArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Nil => out.extend_from_slice(b"$-1\r\n"),
            Self::Array(items) => {
                push_length(out, b'*', items.len());
                items.iter().for_each(|item| item.encode(out));
            }
            Self::Silence => {}
        }
    }
}

/// Appends a command as a client sends it.
pub(crate) fn push_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    push_length(out, b'*', args.len());
    for arg in args {
        push_bulk(out, arg);
    }
}

fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    push_length(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn push_length(out: &mut Vec<u8>, kind: u8, length: usize) {
    // No vector holds more than i64::MAX bytes.
    push_header(out, kind, length as i64);
}

fn push_header(out: &mut Vec<u8>, kind: u8, number: i64) {
    out.push(kind);
    push_i64(out, number);
    out.extend_from_slice(b"\r\n");
}

/// A line of text ends at its first line break, so breaks inside become spaces, as in Redis.
fn push_line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(text);
    for byte in &mut out[start..] {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}
