//! The words of a command, such as `SET orders:42 a:7f3c NX PX 2000`, or `EVALSHA renew orders:42 a:7f3c
//! 2000` for a script of the lock library.

use dlock::LockKey;

use super::super::words::{joined, text};
use super::scripts;
use super::value::Value;

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
                Some(name) => {
                    let rest = without_question(name, rest);
                    joined([verb, name.to_owned()].into_iter().chain(without_fences(rest)))
                }
                None => joined([verb, shown(script, by_digest)].into_iter().chain(keys(rest))),
            }
        }
        args => joined(keys(args)),
    }
}

/// Formats a key or an argument: the key that holds an owner token as the name of its lock (`orders:42`), the
/// other two as `orders:42:fence` and `orders:42:freed`.
pub(super) fn key(bytes: &[u8]) -> String {
    match stored(bytes) {
        Some((name, "owner")) => text(name.as_bytes()),
        Some((name, part @ ("fence" | "freed"))) => text(format!("{name}:{part}").as_bytes()),
        _ => text(bytes),
    }
}

/// Returns the name and the part of a lock whose key or channel it is.
fn stored(key: &[u8]) -> Option<(&str, &str)> {
    LockKey::split_stored(std::str::from_utf8(key).ok()?)
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
    args.iter().filter(|arg| !matches!(stored(arg), Some((_, "fence")))).map(|arg| key(arg))
}

/// Leaves out the last argument of a release or renewal, which asks for the server's own commands, and an
/// empty channel before it.
fn without_question<'a, 'b>(name: &str, args: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    match (name, args) {
        ("renew" | "release", [_, _, second, _]) => &args[..if second.is_empty() { 2 } else { 3 }],
        _ => args,
    }
}

/// Formats an unknown script: the beginning of its digest, or its text without indentation.
fn shown(script: &[u8], is_digest: bool) -> String {
    if is_digest {
        return text(script.get(..8).unwrap_or(script));
    }
    let lines = String::from_utf8_lossy(script);
    text(lines.split_whitespace().collect::<Vec<_>>().join(" ").as_bytes())
}
