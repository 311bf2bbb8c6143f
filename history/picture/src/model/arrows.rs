//! Messages as arrows between lanes.

use history::Message;

use super::Arrow;
use super::cast::Cast;

/// Returns the arrows of the messages, in the order of their sending.
pub(super) fn arrows(messages: &[Message], cast: &Cast<'_>) -> Vec<Arrow> {
    let arrow = |message: &Message| {
        Some(Arrow {
            from: cast.lane(&message.from)?,
            to: cast.lane(&message.to)?,
            sent: message.sent,
            fate: message.fate,
            is_reply: message.is_reply,
            words: message.words.clone(),
            bytes: message.bytes.clone(),
        })
    };
    let mut arrows: Vec<Arrow> = messages.iter().filter_map(arrow).collect();
    arrows.sort_by_key(|arrow| arrow.sent);
    arrows
}
