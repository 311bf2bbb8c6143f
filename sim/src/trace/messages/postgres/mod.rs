//! PostgreSQL: `Parse s0 "SELECT …", Describe s0` is answered by `parsed, 2 columns`, and `Bind s0 (7),
//! Execute` by `(7, a) SELECT 1`. `request.rs` reads a client's messages, `reply.rs` a server's.
//!
//! The messages that one end sends as a unit are one message of the trace: a client's up to its Sync, a
//! server's up to its ReadyForQuery.

mod reply;
mod request;

use super::flow::Flow;
use super::words::joined;
use super::{Parts, Protocol};
use crate::servers::postgres::PORT;

/// The row of this protocol in the table. The first bytes of a client, a length, tell it from no other.
pub(super) static PROTOCOL: Protocol = Protocol { port: PORT, is_opening: |_| false, decode };

/// Splits the bytes of a client and of a server.
fn decode(client: &Flow, server: &Flow) -> [Parts; 2] {
    let (requests, asked_for_encryption) = request::parts(client.bytes());
    [requests, reply::parts(server.bytes(), asked_for_encryption)]
}

/// The messages of a unit so far.
#[derive(Default)]
struct Unit(Vec<String>);

impl Unit {
    fn add(&mut self, words: impl Into<String>) {
        self.0.push(words.into());
    }

    /// Adds the unit to `parts`, if it has messages. It ends at `end`; without words of its own it has those
    /// of `otherwise`.
    fn finish(&mut self, parts: &mut Parts, end: usize, is_reply: bool, otherwise: &str) {
        if end > parts.read {
            let words = match self.0.is_empty() {
                true => otherwise.to_owned(),
                false => joined([self.0.join(", ")]),
            };
            parts.push(end, is_reply, words);
        }
        self.0.clear();
    }
}
