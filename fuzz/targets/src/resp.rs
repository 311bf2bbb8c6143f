//! The simulated Redis (`sim serve-redis`): the reader of requests, all commands, the append-only file, and
//! the reader of messages for traces. Also the clients of `dlock`, on a server that sends anything.
//!
//! Input: a byte of flags, a byte that picks the cuts of the stream, then the stream. With the flag 128 it
//! goes to a client of one Redis, with 64 as well to one of three, else to the server, whose version the
//! other bits pick.

use std::time::Duration;

use sim::servers::host::Host;
use sim::servers::redis::{PORT, Persistence, RedisHost, Version};

use crate::client;
use crate::machine::Local;
use crate::messages;
use crate::server::{Server, cut};

const TO_CLIENT: u8 = 128;
const TO_THREE: u8 = 64;

/// Lists all keys of all databases with their values, and the times at which they expire.
const LIST: &str = "local readers = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, \
    set = {'SMEMBERS'}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}} local all = {} \
    for database = 0, 15 do redis.call('SELECT', database) for _, key in ipairs(redis.call('KEYS', '*')) do \
    local kind = redis.call('TYPE', key).ok local command, from, to, with = unpack(readers[kind]) \
    local value if with then value = redis.call(command, key, from, to, with) \
    elseif from then value = redis.call(command, key, from, to) else value = redis.call(command, key) end \
    if kind == 'set' or kind == 'hash' then table.sort(value) end \
    if type(value) == 'table' then value = table.concat(value, ' ') end \
    all[#all + 1] = database .. key .. value .. redis.call('PEXPIRETIME', key) end end \
    return table.concat(all, '\\n')";

/// Asserts that the answers don't depend on how the requests arrive, that they are whole replies, that the
/// server still serves, and that it has the same keys after a restart; and that the calls of a client end.
pub fn run(data: &[u8]) {
    let Some((&[flags, cuts], bytes)) = data.split_first_chunk() else { return };
    if flags & TO_CLIENT != 0 {
        let url = if flags & TO_THREE != 0 { "redis://one,two,three" } else { "redis://one" };
        return client::lock(url, cut(bytes, cuts.into()));
    }
    let version = match flags % 3 {
        0 => Version::Redis7,
        1 => Version::Redis84,
        _ => Version::Valkey9,
    };
    let host = || RedisHost::<Local>::new().version(version).persistence(Persistence::Always);
    let (mut server, answer) = answered(&host(), [bytes]);
    let (_, of_pieces) = answered(&host(), cut(bytes, cuts.into()));
    assert_eq!(text(&answer), text(&of_pieces), "the answers depend on how the requests arrive");
    if !has_feed(bytes) {
        check_replies(&answer);
    }
    messages::read(PORT, bytes, &answer);
    assert_eq!(server.ask(b"PING\r\n"), b"+PONG\r\n");
    let list = command(&[b"EVAL", LIST.as_bytes(), b"0"]);
    let keys = server.ask(&list);
    assert!(keys.starts_with(b"$"), "{}", text(&keys));
    drop(server);
    let host = host();
    let (server, _) = answered(&host, [bytes]);
    let mut server = server.restarted(&host);
    assert_eq!(text(&keys), text(&server.ask(&list)), "a restart changes the keys");
}

/// Starts a server and sends it `segments`. Returns the server, and its answer after ten seconds.
fn answered<'a>(host: &impl Host<Local>, segments: impl IntoIterator<Item = &'a [u8]>) -> (Server, Vec<u8>) {
    let mut server = Server::start(host);
    let client = server.open();
    let mut answer = server.send(&client, segments);
    server.wait(Duration::from_secs(10));
    answer.extend(client.take());
    (server, answer)
}

/// Returns true if the client may have asked for the stream of a replica, which is not made of replies.
fn has_feed(bytes: &[u8]) -> bool {
    bytes.windows(5).any(|word| word.eq_ignore_ascii_case(b"psync"))
}

/// Checks that `bytes` are whole replies of RESP2 or RESP3. The client library is stricter: it refuses errors
/// that are not UTF-8, which Redis sends if a request has them.
pub(crate) fn check_replies(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let after = after_reply(rest);
        rest = after.unwrap_or_else(|| panic!("no reply: {} in {}", text(rest), text(bytes)));
    }
}

/// Returns the bytes after the reply at the start of `bytes`; `None` if there is none.
fn after_reply(bytes: &[u8]) -> Option<&[u8]> {
    // The number of values that are still to come, those within others included.
    let (mut missing, mut rest) = (1_usize, bytes);
    while missing > 0 {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
        let (line, after) = (&rest[..end], rest[end..].strip_prefix(b"\r\n")?);
        let (kind, line) = line.split_first()?;
        let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
        missing -= 1;
        rest = match kind {
            b'+' | b'-' | b',' | b'(' => after,
            b':' => number().map(|_| after)?,
            b'_' | b'#' => after,
            b'$' | b'=' if line == b"-1" => after,
            b'$' | b'=' => {
                let (_, after) = after.split_at_checked(usize::try_from(number()?).ok()?)?;
                after.strip_prefix(b"\r\n")?
            }
            b'*' if line == b"-1" => after,
            b'*' | b'~' | b'>' | b'%' => {
                let size = usize::try_from(number()?).ok()?;
                missing += if *kind == b'%' { 2 * size } else { size };
                after
            }
            _ => return None,
        };
    }
    Some(rest)
}

/// Encodes a request.
pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).bytes());
        command.extend(*word);
        command.extend(b"\r\n");
    }
    command
}

/// Returns bytes as text for the message of a failure.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
