//! Replies, as commands return them and as they go over the wire: RESP2, or RESP3 for a client that said
//! `HELLO 3`.

use std::borrow::Cow;
use std::sync::Arc;

use super::number::{format_f64, push_i64};

/// The answer to one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Reply {
    /// `+OK`.
    Status(Cow<'static, [u8]>),
    /// `-ERR …`: the code and the message.
    Error(Cow<'static, [u8]>),
    /// `:1`.
    Integer(i64),
    /// `$3`: any bytes.
    Bulk(Arc<[u8]>),
    /// `$-1`: no value.
    #[default]
    Nil,
    /// `*-1`: a transaction that was not carried out.
    NilArray,
    /// `*2`.
    Array(Vec<Reply>),
    /// Names and values: `%1` in RESP3, an array of both in turn in RESP2.
    Map(Vec<(&'static str, Reply)>),
    /// `~2` in RESP3, an array in RESP2.
    Set(Vec<Reply>),
    /// `,1.5` in RESP3, a bulk in RESP2.
    Double(f64),
    /// Keys and values: `%1` in RESP3, an array of both in turn in RESP2.
    Pairs(Vec<(Reply, Reply)>),
    /// Pairs: an array of arrays in RESP3, one array of all elements in RESP2.
    Nested(Vec<(Reply, Reply)>),
    /// An encoded reply, in the protocol that the client spoke before it changed to another.
    Encoded(Arc<[u8]>),
    /// Text for people: `=7` in RESP3, a bulk in RESP2.
    Verbatim(Arc<[u8]>),
    /// A published message: `>3` in RESP3, an array in RESP2.
    Push(Vec<Reply>),
    /// Several replies to one command.
    Several(Vec<Reply>),
    /// No reply: the connection belongs to a replica from now on.
    Silence,
}

/// The protocol of a connection: RESP2 until HELLO chooses another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// RESP2, which all versions of Redis speak.
    #[default]
    Resp2,
    /// RESP3, of Redis 6 and later.
    Resp3,
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

    pub(crate) fn verbatim(text: impl AsRef<[u8]>) -> Self {
        Self::Verbatim(text.as_ref().into())
    }

    pub(crate) fn count(number: usize) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// Returns an array of texts.
    pub(crate) fn texts(texts: impl IntoIterator<Item = Arc<[u8]>>) -> Self {
        Self::Array(texts.into_iter().map(Self::Bulk).collect())
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Returns the reply encoded in `protocol`, even if the client has chosen another protocol by the time it
    /// is sent.
    pub(crate) fn encoded(&self, protocol: Protocol) -> Self {
        let mut out = Vec::new();
        self.encode(&mut out, protocol);
        Self::Encoded(out.into())
    }

    fn encode_pairs(&self, pairs: &[(Reply, Reply)], out: &mut Vec<u8>, protocol: Protocol) {
        let is_nested = protocol == Protocol::Resp3 && matches!(self, Self::Nested(_));
        match protocol {
            Protocol::Resp2 => push_length(out, b'*', 2 * pairs.len()),
            Protocol::Resp3 => push_length(out, if is_nested { b'*' } else { b'%' }, pairs.len()),
        }
        for (one, other) in pairs {
            if is_nested {
                push_length(out, b'*', 2);
            }
            one.encode(out, protocol);
            other.encode(out, protocol);
        }
    }

    /// Appends the encoded reply.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, protocol: Protocol) {
        match self {
            Self::Status(text) => push_line(out, b'+', text),
            Self::Error(text) => push_line(out, b'-', text),
            Self::Integer(number) => push_header(out, b':', *number),
            Self::Bulk(bytes) => push_bulk(out, bytes),
            Self::Nil | Self::NilArray if protocol == Protocol::Resp3 => out.extend_from_slice(b"_\r\n"),
            Self::NilArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Nil => out.extend_from_slice(b"$-1\r\n"),
            Self::Array(items) => {
                push_length(out, b'*', items.len());
                items.iter().for_each(|item| item.encode(out, protocol));
            }
            Self::Set(items) => {
                push_length(out, if protocol == Protocol::Resp3 { b'~' } else { b'*' }, items.len());
                items.iter().for_each(|item| item.encode(out, protocol));
            }
            Self::Double(number) if protocol == Protocol::Resp3 => {
                push_line(out, b',', format_f64(*number).as_bytes());
            }
            Self::Double(number) => push_bulk(out, format_f64(*number).as_bytes()),
            Self::Pairs(pairs) | Self::Nested(pairs) => self.encode_pairs(pairs, out, protocol),
            Self::Push(items) => {
                push_length(out, if protocol == Protocol::Resp3 { b'>' } else { b'*' }, items.len());
                items.iter().for_each(|item| item.encode(out, protocol));
            }
            Self::Several(replies) => replies.iter().for_each(|reply| reply.encode(out, protocol)),
            Self::Map(fields) => {
                match protocol {
                    Protocol::Resp2 => push_length(out, b'*', 2 * fields.len()),
                    Protocol::Resp3 => push_length(out, b'%', fields.len()),
                }
                for (name, value) in fields {
                    push_bulk(out, name.as_bytes());
                    value.encode(out, protocol);
                }
            }
            Self::Verbatim(bytes) if protocol == Protocol::Resp3 => {
                push_length(out, b'=', bytes.len() + 4);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Verbatim(bytes) => push_bulk(out, bytes),
            Self::Encoded(bytes) => out.extend_from_slice(bytes),
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

/// Replaces line breaks by spaces, as Redis does: a line break would end the reply.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(reply: &Reply, protocol: Protocol) -> String {
        let mut out = Vec::new();
        reply.encode(&mut out, protocol);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nulls_maps_and_texts_differ_between_the_protocols() {
        let reply = Reply::Array(vec![
            Reply::Nil,
            Reply::NilArray,
            Reply::Map(vec![("proto", Reply::Integer(3))]),
            Reply::verbatim("ab"),
            Reply::bulk("c"),
        ]);
        let resp2 = "*5\r\n$-1\r\n*-1\r\n*2\r\n$5\r\nproto\r\n:3\r\n$2\r\nab\r\n$1\r\nc\r\n";
        assert_eq!(encoded(&reply, Protocol::Resp2), resp2);
        let resp3 = "*5\r\n_\r\n_\r\n%1\r\n$5\r\nproto\r\n:3\r\n=6\r\ntxt:ab\r\n$1\r\nc\r\n";
        assert_eq!(encoded(&reply, Protocol::Resp3), resp3);
    }
}
