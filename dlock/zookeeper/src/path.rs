//! The paths of locks: `/locks/<name>/_c_<guid>-lock-<ten digits>`, a node for each holder and waiter. That
//! of a reader is `_c_<guid>-__READ__<ten digits>`.
//!
//! Source: the ZooKeeper recipes for locks and shared locks, the protected names of Apache Curator
//! (`ProtectedMode`), and the names of readers in its `InterProcessReadWriteLock`. The
//! guid lets a client find its node among the queue's children if the answer to the creation was lost.

use std::fmt::Write;

use dlock_runtime::Runtime;

/// The parent of all queues.
pub const ROOT: &str = "/locks";

/// The text between the guid and the digits of an entry.
const MIDDLE: &str = "-lock-";

/// The same text in the entry of a reader.
const READER: &str = "-__READ__";

/// The least number of digits that the server appends, with leading zeros.
const DIGITS: usize = 10;

/// Returns the node whose children are the queue of the lock `name`.
pub fn queue(name: &str) -> String {
    format!("{ROOT}/{}", escape(name))
}

/// Returns the name of the lock with the queue `path`: the inverse of [`queue`].
pub fn lock_name(path: &str) -> Option<String> {
    unescape(path.strip_prefix(ROOT)?.strip_prefix('/')?)
}

/// Escapes `name` as one component of a path: `/`, `%` and bytes other than printable ASCII become `%` and
/// two hexadecimal digits. Different names stay different.
pub fn escape(name: &str) -> String {
    // `.` and `..` are refused by servers.
    let dots = matches!(name, "." | "..");
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%') && !dots {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Returns the inverse of [`escape`]; `None` for text that it never returns.
pub fn unescape(component: &str) -> Option<String> {
    let mut name = Vec::with_capacity(component.len());
    let mut rest = component.bytes();
    while let Some(byte) = rest.next() {
        name.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(name).ok().filter(|name| !component.contains('/') && escape(name) == component)
}

/// Returns the guid of one entry: 128 random bits in hexadecimal.
pub fn guid<R: Runtime>(runtime: &R) -> String {
    let mut bytes = [0; 16];
    runtime.fill_random(&mut bytes);
    let mut guid = String::with_capacity(32);
    for byte in bytes {
        // Writing to a String can't fail.
        let _ = write!(guid, "{byte:02x}");
    }
    guid
}

/// Returns the prefix of the entry with this guid: the server appends the digits.
pub fn entry_prefix(guid: &str) -> String {
    format!("_c_{guid}{MIDDLE}")
}

/// Returns the prefix of a reader's entry with this guid.
pub fn reader_prefix(guid: &str) -> String {
    format!("_c_{guid}{READER}")
}

/// Returns true if the entry is that of a reader.
pub fn is_reader(name: &str) -> bool {
    entry_number(name).is_some() && name.contains(READER)
}

/// Returns the number of an entry, which orders the queue; `None` for another node.
///
/// The server counts a queue's entries in 32 bits with a sign. This number is that count without its sign:
/// compare two by the sign of their wrapping difference. From 2 147 483 647 on, numbers are out of order and
/// may repeat: no lock is granted on them.
pub fn entry_number(name: &str) -> Option<u32> {
    let (_, count) = name.rsplit_once(MIDDLE).or_else(|| name.rsplit_once(READER))?;
    let digits = count.strip_prefix('-').unwrap_or(count);
    let is_count = count.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_count { count.parse().ok().map(i32::cast_unsigned) } else { None }
}

fn digit(byte: Option<u8>) -> Option<u32> {
    char::from(byte?).to_digit(16)
}
