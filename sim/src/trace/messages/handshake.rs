//! The opening of a connection as messages, if the network held, slowed or lost it: without them, a request
//! that waits for its connection would be nowhere in the picture.

use history::{Fate, Message, Nanos};

use super::flow::fate;
use crate::world::capture::Capture;

/// The words of a request for a connection, and of its answer.
const WORDS: [&str; 2] = ["opens a connection", "accepts the connection"];

/// Returns the messages of the handshakes that went otherwise than the network's latency alone would have it.
/// Their connections count on from those of the capture.
pub(super) fn messages(capture: &Capture) -> Vec<Message> {
    let mut messages = Vec::new();
    for (number, handshake) in capture.handshakes.iter().enumerate() {
        let ends = [handshake.opener, handshake.acceptor].map(|process| &capture.processes[process]);
        for (leg, (words, is_reply)) in handshake.legs.iter().zip(WORDS.into_iter().zip([false, true])) {
            let [from, to] = if is_reply { [ends[1], ends[0]] } else { ends };
            let fate = fate(leg.passage);
            if matches!(fate, Fate::Arrived { held: false, .. }) && !leg.is_slow {
                continue;
            }
            messages.push(Message {
                connection: capture.connections.len() + number,
                from: from.clone(),
                to: to.clone(),
                sent: Nanos(leg.sent),
                fate,
                is_reply,
                words: words.to_owned(),
                bytes: Vec::new(),
            });
        }
    }
    messages
}
