//! Reads the messages of a run from the bytes of its connections.
//!
//! `flow.rs` is one direction of a connection, `handshake.rs` the opening of one, `words.rs` shortens texts.
//! Each protocol has a file or a folder and a row in `PROTOCOLS`: `resp/` (Redis), `http.rs` (the resource),
//! `grpc/` (etcd), `postgres/` and `zookeeper.rs`; `raw.rs` is for all others, and for those whose feature is
//! off. A protocol splits both directions into `Part`s; bytes that it can't read are left to `raw.rs`.

mod flow;
#[cfg(feature = "etcd")]
mod grpc;
mod handshake;
mod http;
#[cfg(feature = "postgres")]
mod postgres;
mod raw;
mod resp;
mod words;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::ops::Range;

use history::Message;

use self::flow::Flow;
use crate::world::capture::{Capture, Connection, Side};

/// A message in the bytes of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    /// The places of its bytes, in order. A message of HTTP/2 can have several, with other messages between.
    ranges: Vec<Range<usize>>,
    /// True if it answers an earlier message of the connection.
    is_reply: bool,
    words: String,
}

/// The messages in the bytes of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    parts: Vec<Part>,
    /// The number of bytes at the beginning that were read. The others are no message of the protocol, or the
    /// beginning of a message whose end was never sent.
    read: usize,
}

/// Splits the bytes of both directions of a connection, the opener's first.
type Decode = fn(&Flow, &Flow) -> [Parts; 2];

/// A protocol whose messages can be read.
struct Protocol {
    /// The port of its servers.
    port: u16,
    /// Returns true if these first bytes of an opener are of the protocol.
    is_opening: fn(&[u8]) -> bool,
    decode: Decode,
}

/// All protocols.
static PROTOCOLS: &[&Protocol] = &[
    &resp::PROTOCOL,
    &http::PROTOCOL,
    #[cfg(feature = "etcd")]
    &grpc::PROTOCOL,
    #[cfg(feature = "postgres")]
    &postgres::PROTOCOL,
    #[cfg(feature = "zookeeper")]
    &zookeeper::PROTOCOL,
];

impl Parts {
    /// Adds a message that follows on the bytes read so far and ends at `end`.
    fn push(&mut self, end: usize, is_reply: bool, words: String) {
        let range = self.read..end;
        self.parts.push(Part { ranges: vec![range], is_reply, words });
        self.read = end;
    }
}

/// Returns the messages of all connections, in the order in which they were sent. The opening of a connection
/// is a message only if the network held, slowed or lost it.
pub fn messages(capture: &Capture) -> Vec<Message> {
    let of_each = capture.connections.iter().enumerate();
    let mut messages: Vec<Message> =
        of_each.flat_map(|(number, connection)| of_connection(capture, number, connection)).collect();
    messages.extend(handshake::messages(capture));
    // Stable: messages of the same instant stay in the order of their connections and bytes.
    messages.sort_by_key(|message| message.sent);
    messages
}

fn of_connection(capture: &Capture, number: usize, connection: &Connection) -> Vec<Message> {
    let sides = [Side::Opener, Side::Acceptor];
    let flows = sides.map(|side| Flow::new(connection, side));
    let decoded = decoder(connection.port, flows[0].bytes())(&flows[0], &flows[1]);
    let mut messages = Vec::new();
    for ((side, flow), mut parts) in sides.into_iter().zip(&flows).zip(decoded) {
        raw::finish(flow, side, &mut parts);
        let [from, to] = [side, side.other()].map(|side| capture.processes[connection.process(side)].clone());
        messages.extend(parts.parts.into_iter().filter_map(|part| {
            let (sent, fate) = flow.passage(&part.ranges)?;
            Some(Message {
                connection: number,
                from: from.clone(),
                to: to.clone(),
                sent,
                fate,
                is_reply: part.is_reply,
                words: part.words,
                bytes: flow.copy(&part.ranges),
            })
        }));
    }
    messages
}

/// Returns the decoder for a port, or for an unknown port by the first bytes that its opener sends.
fn decoder(port: u16, opening: &[u8]) -> Decode {
    let of_port = PROTOCOLS.iter().find(|protocol| protocol.port == port);
    let known = of_port.or_else(|| PROTOCOLS.iter().find(|protocol| (protocol.is_opening)(opening)));
    known.map_or(raw::decode, |protocol| protocol.decode)
}
