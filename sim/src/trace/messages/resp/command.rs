//! The words of a command, such as `SET orders:42 a:7f3c NX PX 2000`, or `EVALSHA renew orders:42 a:7f3c
//! 2000` for a script of the lock library.

use super::super::words::{joined, text};
use super::scripts;
use super::value::Value;

/// The beginning of the keys of a lock, and the ends of them that are left out or kept (`dlock`'s `key.rs`).
const LOCK: &str = "lock:v1:{";
const OWNER: &str = "}:owner";
const FENCE: &str = "}:fence";
const FREED: &str = "}:freed";

/// Formats a command. Keys of the lock library appear as the name of their lock.
pub(super) fn words(command: &Value<'_>) -> String {
    let Value::List(values) = command else { return command.bytes().map(text).unwrap_or_default() };
    let args: Vec<&[u8]> = values.iter().map(|value| value.bytes().unwrap_or_default()).collect();
    let (by_digest, by_text) = (is(&args, b"EVALSHA"), is(&args, b"EVAL"));
    match args.as_slice() {
        [verb, script, _, rest @ ..] if by_digest || by_text => {
            let name = if by_digest { scripts::by_digest(script) } else { scripts::by_text(script) };
            let verb = text(verb);
            match name {
                Some(name) => joined([verb, name.to_owned()].into_iter().chain(without_fences(rest))),
                None => joined([verb, shown(script, by_digest)].into_iter().chain(keys(rest))),
            }
        }
        args => joined(keys(args)),
    }
}

/// Formats a key or an argument: the key that holds an owner token as the name of its lock (`orders:42`), the
/// other two as `orders:42:fence` and `orders:42:freed`.
pub(super) fn key(bytes: &[u8]) -> String {
    let stored = std::str::from_utf8(bytes).ok().and_then(|key| key.strip_prefix(LOCK));
    let Some(stored) = stored else { return text(bytes) };
    if let Some(name) = stored.strip_suffix(OWNER) {
        return text(name.as_bytes());
    }
    let other = [FENCE, FREED].into_iter().find_map(|end| Some((stored.strip_suffix(end)?, &end[1..])));
    match other {
        Some((name, end)) => text([name, end].concat().as_bytes()),
        None => text(bytes),
    }
}

fn is(args: &[&[u8]], verb: &[u8]) -> bool {
    args.first().is_some_and(|first| first.eq_ignore_ascii_case(verb))
}

fn keys<'a>(args: &'a [&'a [u8]]) -> impl Iterator<Item = String> + 'a {
    args.iter().map(|arg| key(arg))
}

/// Formats the keys and arguments of a script of the lock library, without the counter that belongs to each
/// lock.
fn without_fences<'a>(args: &'a [&'a [u8]]) -> impl Iterator<Item = String> + 'a {
    args.iter()
        .filter(|arg| !(arg.starts_with(LOCK.as_bytes()) && arg.ends_with(FENCE.as_bytes())))
        .map(|arg| key(arg))
}

/// Formats an unknown script: the beginning of its digest, or its text without indentation.
fn shown(script: &[u8], is_digest: bool) -> String {
    if is_digest {
        return text(script.get(..8).unwrap_or(script));
    }
    let lines = String::from_utf8_lossy(script);
    text(lines.split_whitespace().collect::<Vec<_>>().join(" ").as_bytes())
}
