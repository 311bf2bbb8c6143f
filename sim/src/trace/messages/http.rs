//! HTTP/1.1, as the resource speaks it: `PUT /orders:42 token 2 by a:7f3c` is answered by
//! `409 stale fencing token, seen 2, got 1`.

use std::fmt;

use resource::http::{FENCE_SEQ, FENCE_TOKEN, LOCK_OWNER};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::flow::Flow;
use super::words::{joined, text};
use super::{Parts, Protocol};
use crate::servers::resource::PORT;

/// The row of this protocol in the table.
pub(super) static PROTOCOL: Protocol = Protocol { port: PORT, is_opening: is_request, decode };

const METHODS: [&str; 7] = ["GET ", "PUT ", "POST ", "HEAD ", "DELETE ", "OPTIONS ", "PATCH "];

/// The headers of requests that words name, each with what it is called there.
const NAMED: [(&str, &str); 5] = [
    (FENCE_TOKEN, "token"),
    (FENCE_SEQ, "seq"),
    ("if-match", "if version"),
    ("if-none-match", "unless"),
    (LOCK_OWNER, "by"),
];

/// Returns true if the bytes begin like a request.
fn is_request(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| bytes.starts_with(method.as_bytes()))
}

/// Splits the bytes of a client and of a server.
fn decode(client: &Flow, server: &Flow) -> [Parts; 2] {
    [parts(client.bytes(), false), parts(server.bytes(), true)]
}

/// A request or a response.
struct Head<'a> {
    /// The first line, without its end.
    line: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

fn parts(bytes: &[u8], is_reply: bool) -> Parts {
    let mut parts = Parts::default();
    while let Some((head, body, end)) = read(bytes, parts.read, is_reply) {
        let words = if is_reply { response(&head, body) } else { request(&head, body) };
        parts.push(end, is_reply, words);
    }
    parts
}

/// Reads the message at `start`: its head, its body and its end. `None` if it is invalid or incomplete.
fn read(bytes: &[u8], start: usize, is_reply: bool) -> Option<(Head<'_>, &[u8], usize)> {
    let rest = bytes.get(start..)?;
    let blank = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = std::str::from_utf8(&rest[..blank]).ok()?.split("\r\n");
    let line = lines.next()?;
    if line.starts_with("HTTP/") != is_reply || !line.contains("HTTP/1.") {
        return None;
    }
    let headers = lines.filter_map(|line| line.split_once(':'));
    let head = Head { line, headers: headers.map(|(name, value)| (name, value.trim())).collect() };
    let body = start + blank + 4;
    let is_chunked = head.value("transfer-encoding").is_some_and(|value| value.ends_with("chunked"));
    let end = if is_chunked {
        chunks_end(bytes, body)?
    } else {
        body.checked_add(head.value("content-length").map_or(Some(0), |value| value.parse().ok())?)?
    };
    Some((head, bytes.get(body..end)?, end))
}

/// Returns the end of a body in chunks.
fn chunks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(at..)?;
        let line = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?.split(';').next()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        at = at.checked_add(line + 2)?.checked_add(size)?.checked_add(2)?;
        if size == 0 {
            return Some(at);
        }
    }
}

impl<'a> Head<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        let header = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        header.map(|(_, value)| *value)
    }
}

fn request(head: &Head<'_>, body: &[u8]) -> String {
    let mut line = head.line.split(' ');
    let mut words: Vec<String> = line.by_ref().take(2).map(|word| text(word.as_bytes())).collect();
    for (header, word) in NAMED {
        if let Some(value) = head.value(header) {
            words.push(format!("{word} {}", text(value.trim_matches('"').as_bytes())));
        }
    }
    if !body.is_empty() {
        words.push(format!("body {}", text(body)));
    }
    joined(words)
}

fn response(head: &Head<'_>, body: &[u8]) -> String {
    let status = head.line.split(' ').nth(1).unwrap_or_default().to_owned();
    match serde_json::from_slice::<Fields>(body) {
        Ok(fields) => joined([status, described(&fields)]),
        _ if body.is_empty() => status,
        _ => joined([status, text(body)]),
    }
}

/// The fields of a JSON object, in its own order.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Formats the fields of an answer: its error first, then the others as `name value`.
fn described(Fields(fields): &Fields) -> String {
    let errors = fields.iter().filter(|(name, _)| name == "error").map(|(_, error)| plain(error));
    // The help is for people at a terminal, and long.
    let others = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "error" | "help"));
    let others = others.map(|(name, value)| format!("{name} {}", plain(value)));
    errors.chain(others).collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(string) => super::words::without_owners(string).into_owned(),
        other => other.to_string(),
    }
}
