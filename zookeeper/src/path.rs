//! Where locks lie in the tree: `/locks/<name>/_c_<guid>-lock-<ten digits>`, one node for each who holds or
//! waits.
//!
//! Source: the ZooKeeper recipe for locks, and the protected names of Apache Curator (`ProtectedMode`): the
//! guid in front lets a client find the node whose creation was not answered among the children of the queue.

use std::fmt::Write;

use dlock_runtime::Runtime;

/// The parent of all queues.
pub const ROOT: &str = "/locks";

/// What stands between the guid and the digits of an entry.
const MIDDLE: &str = "-lock-";

/// How many characters the server appends at least: digits, with zeros in front.
const DIGITS: usize = 10;

/// Returns the node whose children queue for the lock of that name.
pub fn queue(name: &str) -> String {
    format!("{ROOT}/{}", escape(name))
}

/// The name of the lock whose queue is `path`, if it is one: the inverse of [`queue`].
pub fn lock_name(path: &str) -> Option<String> {
    unescape(path.strip_prefix(ROOT)?.strip_prefix('/')?)
}

/// `name` as one component of a path: `/`, `%` and all that is not printable ASCII become `%` and two
/// hexadecimal digits for each byte. Unlike names stay unlike.
pub fn escape(name: &str) -> String {
    // `.` and `..` mean directories and are refused.
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

/// The inverse of [`escape`]; `None` for what it never gives.
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

/// 128 random bits in hexadecimal: the guid of one entry.
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

/// What the name of the entry with that guid begins with: the server appends the digits.
pub fn entry_prefix(guid: &str) -> String {
    format!("_c_{guid}{MIDDLE}")
}

/// The number of an entry, by which the queue is ordered; `None` for a node that is no entry.
///
/// The server counts a queue's entries in 32 bits with a sign. This number is that count without its sign:
/// compare two by the sign of their wrapping difference. From 2 147 483 647 on, numbers are not in order and
/// may come twice: no lock is granted on them.
pub fn entry_number(name: &str) -> Option<u32> {
    let (_, count) = name.rsplit_once(MIDDLE)?;
    let digits = count.strip_prefix('-').unwrap_or(count);
    let is_count = count.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_count { count.parse().ok().map(i32::cast_unsigned) } else { None }
}

fn digit(byte: Option<u8>) -> Option<u32> {
    char::from(byte?).to_digit(16)
}
