//! The messages of a connection for traces: they are read from whatever a connection carried.

use sim::trace::messages;
use sim::world::capture::{Capture, Connection, Passage, Segment, Side};

/// Reads the messages of a connection to `port` on which the opener sent `asked`, and the acceptor
/// `answered`. Returns the words of the replies.
///
/// # Panics
///
/// If a byte is in two messages, or a message has no words on one line.
pub(crate) fn read(port: u16, asked: &[u8], answered: &[u8]) -> Vec<String> {
    let segment = |from, sent, bytes: &[u8]| Segment {
        from,
        sent,
        bytes: bytes.to_vec(),
        passage: Passage::Arrives(sent + 1),
    };
    let connection = Connection {
        opener: 0,
        acceptor: 1,
        port,
        requested: 0,
        accepted: 1,
        connected: Some(2),
        segments: vec![segment(Side::Opener, 3, asked), segment(Side::Acceptor, 5, answered)],
        endings: Vec::new(),
        unsent: Vec::new(),
    };
    let processes = vec!["client".to_owned(), "server".to_owned()];
    let capture = Capture { processes, connections: vec![connection], ..Capture::default() };
    let messages = messages::messages(&capture);
    let bytes: usize = messages.iter().map(|message| message.bytes.len()).sum();
    assert!(bytes <= asked.len() + answered.len(), "a byte is in two messages");
    assert!(messages.iter().all(|message| !message.words.contains(['\n', '\r'])), "{messages:?}");
    messages.into_iter().filter(|message| message.is_reply).map(|message| message.words).collect()
}
