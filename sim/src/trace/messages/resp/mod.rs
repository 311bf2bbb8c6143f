//! Redis: RESP2 and RESP3. `value.rs` reads values, `command.rs` formats a client's, `reply.rs` a server's;
//! `scripts.rs` knows the scripts of the lock library.

mod command;
mod reply;
mod scripts;
mod value;

use self::value::Value;
use super::flow::Flow;
use super::{Parts, Protocol};
use crate::servers::redis::PORT;

/// The row of this protocol in the table.
pub(super) static PROTOCOL: Protocol =
    Protocol { port: PORT, is_opening: |bytes| bytes.starts_with(b"*"), decode };

/// Splits the bytes of a client and of a server.
fn decode(client: &Flow, server: &Flow) -> [Parts; 2] {
    [
        parts(client.bytes(), |command| (false, command::words(command))),
        parts(server.bytes(), |reply| (!reply::is_push(reply), reply::words(reply))),
    ]
}

/// Makes a message of each value; `describe` says whether it is a reply, and its words.
fn parts(bytes: &[u8], describe: impl Fn(&Value<'_>) -> (bool, String)) -> Parts {
    let mut parts = Parts::default();
    while let Some((value, end)) = value::read(bytes, parts.read) {
        let (is_reply, words) = describe(&value);
        parts.push(end, is_reply, words);
    }
    parts
}
