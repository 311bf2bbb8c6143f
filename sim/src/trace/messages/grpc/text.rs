//! Messages, keys, values and leases of etcd as words.

use dlock::LockKey;
use etcd_client::proto::PbKeyValue;
use prost::Message;

use super::super::words::text;

/// Returns the last part of a path: `Range` of `/etcdserverpb.KV/Range`.
pub(super) fn method(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Decodes a message and formats it; `None` if the bytes are no such message.
pub(super) fn of<M: Message + Default, T>(body: &[u8], format: impl FnOnce(M) -> T) -> Option<T> {
    M::decode(body).ok().map(format)
}

/// Formats a key: of a lock of the library as `orders:42/7f3c`, with the first digits of the owner token.
pub(super) fn key(key: &[u8]) -> String {
    text(key.strip_prefix(LockKey::ETCD_PREFIX.as_bytes()).filter(|rest| !rest.is_empty()).unwrap_or(key))
}

/// Formats the keys from `from` up to `end`: one key, those that begin with `from` (`orders:42/*`), or a
/// range.
pub(super) fn keys(from: &[u8], end: &[u8]) -> String {
    match end {
        [] => key(from),
        [0] => format!("{}..", key(from)),
        end if end == end_of_prefix(from) => format!("{}*", key(from)),
        end => format!("{}..{}", key(from), key(end)),
    }
}

/// Formats the number of a lease as `etcdctl` does.
pub(super) fn lease(number: i64) -> String {
    format!("lease {number:x}")
}

/// Formats a stored key with its value and the revision of its creation.
pub(super) fn pair(pair: &PbKeyValue) -> String {
    // Empty if only keys were asked for.
    let value = if pair.value.is_empty() { String::new() } else { format!("={}", text(&pair.value)) };
    format!("{}{value} created at {}", key(&pair.key), pair.create_revision)
}

/// Returns the first key after all that begin with `prefix`.
fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}
