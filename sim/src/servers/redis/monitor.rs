//! The lines that MONITOR shows. Source: `replicationFeedMonitors` in `replication.c`, `sdscatrepr` in
//! `sds.c` and `call` in `server.c` of Redis 7.0.

use super::command::{Command, Run, ServerCommand};
use super::request::Args;

const MICROS_PER_SECOND: i64 = 1_000_000;
const REDACTED: &[u8] = b"(redacted)";

/// Returns the line of a command that `source` has sent: a client's name, or `lua`.
pub(crate) fn line(now_micros: i64, database: usize, source: &str, args: Args<'_>) -> Vec<u8> {
    let (seconds, micros) = (now_micros / MICROS_PER_SECOND, now_micros % MICROS_PER_SECOND);
    let mut line = format!("+{seconds}.{micros:06} [{database} {source}]").into_bytes();
    let secret = secret(args);
    for (at, arg) in args.iter().enumerate() {
        line.push(b' ');
        push_quoted(&mut line, if secret.contains(&at) { REDACTED } else { arg });
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// Returns the places of the name and the password in `HELLO 3 AUTH name password`.
fn secret(args: Args<'_>) -> std::ops::Range<usize> {
    let is_auth = args.len() > 4
        && args.at(0).eq_ignore_ascii_case(b"hello")
        && args.at(2).eq_ignore_ascii_case(b"auth");
    if is_auth { 3..5 } else { 0..0 }
}

fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(b'"');
}

impl Command {
    /// Returns true if monitors are not shown the command: it administers the server.
    pub(crate) fn is_hidden(&self, args: Args<'_>) -> bool {
        use ServerCommand::{Client, Config, Monitor, Psync, ReplConf, ReplicaOf};
        match self.run {
            Run::Server(Config | Monitor | Psync | ReplConf | ReplicaOf) => true,
            Run::Server(Client) => {
                [&b"list"[..], b"no-evict"].iter().any(|name| args.at(1).eq_ignore_ascii_case(name))
            }
            _ => false,
        }
    }

    /// Returns true if monitors are shown the command before it runs: it runs other commands.
    pub(crate) fn is_shown_first(&self) -> bool {
        matches!(self.run, Run::Server(ServerCommand::Eval | ServerCommand::EvalSha))
    }

    /// Returns true if the command reads or writes keys or messages, which a monitor may not.
    pub(crate) fn is_kept_from_monitors(&self) -> bool {
        match self.run {
            Run::Keys(_) | Run::Clients(_) => {
                !["echo", "ping", "pubsub", "select", "time"].contains(&self.name)
            }
            Run::Server(_) => self.is_shown_first(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::ArgBuffer;
    use super::*;

    fn shown(words: &[&[u8]]) -> String {
        let mut args = ArgBuffer::default();
        words.iter().for_each(|word| args.push(word));
        String::from_utf8(line(1_700_000_000_000_042, 3, "lua", args.args())).unwrap()
    }

    #[test]
    fn words_are_quoted_as_redis_quotes_them() {
        assert_eq!(
            shown(&[b"SET", b"a \"b\"\\", b"\n\r\t\x07\x08\0\x7f\xff"]),
            "+1700000000.000042 [3 lua] \"SET\" \"a \\\"b\\\"\\\\\" \"\\n\\r\\t\\a\\b\\x00\\x7f\\xff\"\r\n"
        );
    }

    #[test]
    fn passwords_are_redacted() {
        let line = shown(&[b"hello", b"3", b"AUTH", b"me", b"secret", b"SETNAME", b"a"]);
        assert!(line.ends_with("\"AUTH\" \"(redacted)\" \"(redacted)\" \"SETNAME\" \"a\"\r\n"), "{line}");
    }
}
