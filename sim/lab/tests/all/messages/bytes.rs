//! Bytes of any kind are read: no bytes panic, and messages do not depend on how bytes are cut into segments.

use std::sync::LazyLock;

use lab::Arm;
use proptest::prelude::*;
use sim::trace::messages::messages;
use sim::world::capture::{Capture, Connection, Passage, Segment, Side};

use super::recorded;

/// The ports of the protocols, and one without.
const PORTS: [u16; 5] = [6379, 80, 2379, 2181, 7000];

/// Connections of all protocols, with all that they carried.
static STREAMS: LazyLock<Vec<Connection>> = LazyLock::new(|| {
    let cases = ["gc-pause", "gc-pause-redlock", "etcd-gc-pause", "gc-pause-zookeeper"];
    let captures = cases.map(|name| recorded(name, Arm::Fenced).capture.unwrap());
    captures.into_iter().flat_map(|capture| capture.connections).collect()
});

/// Returns a capture of one connection that carried these segments.
fn capture(port: u16, segments: Vec<(Side, Vec<u8>)>) -> Capture {
    let segments = (0..).zip(segments);
    let segments =
        segments.map(|(sent, (from, bytes))| Segment { from, sent, bytes, passage: Passage::Arrives(sent) });
    let connection = Connection {
        opener: 0,
        acceptor: 1,
        port,
        requested: 0,
        accepted: 0,
        connected: Some(0),
        segments: segments.collect(),
        endings: Vec::new(),
        unsent: Vec::new(),
    };
    let processes = vec!["a".to_owned(), "b".to_owned()];
    Capture { processes, connections: vec![connection], refusals: Vec::new(), handshakes: Vec::new() }
}

/// Returns all that a connection carried, in each direction.
fn streams(connection: &Connection) -> [Vec<u8>; 2] {
    [Side::Opener, Side::Acceptor].map(|side| {
        let segments = connection.segments.iter().filter(|segment| segment.from == side);
        segments.flat_map(|segment| segment.bytes.clone()).collect()
    })
}

/// Cuts bytes into segments of these lengths, in turns.
fn cut(side: Side, bytes: &[u8], lengths: &[usize]) -> Vec<(Side, Vec<u8>)> {
    let mut segments = Vec::new();
    let (mut rest, mut lengths) = (bytes, lengths.iter().cycle());
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(lengths.next().copied().unwrap_or(1).clamp(1, rest.len()));
        segments.push((side, head.to_vec()));
        rest = tail;
    }
    segments
}

/// Returns the bytes and the words of all messages that `side` sent.
fn said(capture: &Capture, side: &str) -> Vec<(Vec<u8>, String)> {
    let messages = messages(capture).into_iter().filter(|message| message.from == side);
    messages.map(|message| (message.bytes, message.words)).collect()
}

/// HPACK carries any bytes, while HTTP allows no control characters in a header.
#[test]
fn a_path_with_a_line_break_is_read_as_one_line() {
    let frame = |kind: u8, flags: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, 1], payload].concat()
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // A literal with the name `:path`, which is 4 in HPACK's static table.
    let headers = frame(1, 4, b"\x04\x0c/Kv/Ran\r\nge!");
    let request = [preface, headers, frame(0, 0, &[0; 5])].concat();
    let said = said(&capture(2379, vec![(Side::Opener, request)]), "a");
    let words: Vec<&str> = said.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(words, ["Ran\u{fffd}\u{fffd}ge!"]);
}

proptest! {
    #[test]
    fn random_bytes_are_all_kept(
        port in proptest::sample::select(&PORTS[..]),
        segments in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
    ) {
        let segments: Vec<(Side, Vec<u8>)> = segments
            .into_iter()
            .map(|(opener, bytes)| (if opener { Side::Opener } else { Side::Acceptor }, bytes))
            .collect();
        let sent: usize = segments.iter().map(|(_, bytes)| bytes.len()).sum();
        let read: usize = messages(&capture(port, segments)).iter().map(|message| message.bytes.len()).sum();
        // Frames of HTTP/2 without a message are left out.
        prop_assert!(read == sent || port == 2379 && read < sent);
    }

    #[test]
    fn messages_do_not_depend_on_segments(
        number in any::<proptest::sample::Index>(),
        lengths in proptest::collection::vec(1..200usize, 1..6),
    ) {
        let connection = number.get(&STREAMS);
        let [opener, acceptor] = streams(connection);
        let whole = [(Side::Opener, opener.clone()), (Side::Acceptor, acceptor.clone())];
        let whole = capture(connection.port, whole.into());
        let cuts = [cut(Side::Opener, &opener, &lengths), cut(Side::Acceptor, &acceptor, &lengths)].concat();
        let cuts = capture(connection.port, cuts);
        for side in ["a", "b"] {
            let words = |capture: &Capture| -> Vec<String> {
                said(capture, side).into_iter().map(|(_, words)| words).collect()
            };
            prop_assert_eq!(words(&whole), words(&cuts));
        }
    }

    #[test]
    fn a_damaged_stream_is_read(
        number in any::<proptest::sample::Index>(),
        ends in proptest::array::uniform2(any::<proptest::sample::Index>()),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let connection = number.get(&STREAMS);
        let mut damaged = streams(connection);
        for (bytes, end) in damaged.iter_mut().zip(ends) {
            bytes.truncate(end.index(bytes.len() + 1));
            for (place, byte) in &flips {
                if let Some(length) = std::num::NonZeroUsize::new(bytes.len()) {
                    bytes[place.index(length.get())] = *byte;
                }
            }
        }
        let [opener, acceptor] = damaged;
        let segments = vec![(Side::Opener, opener), (Side::Acceptor, acceptor)];
        for port in [connection.port, 7000] {
            let read = messages(&capture(port, segments.clone()));
            prop_assert!(read.iter().all(|message| !message.bytes.is_empty()));
        }
    }
}
