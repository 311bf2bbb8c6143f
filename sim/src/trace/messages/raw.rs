//! Protocols without a decoder, and bytes that a decoder could not read.

use super::flow::Flow;
use super::words::{is_printable, raw};
use super::{Part, Parts};
use crate::world::capture::Side;

/// Splits text at its line feeds. Anything else is left to [`finish`].
pub(super) fn decode(opener: &Flow, acceptor: &Flow) -> [Parts; 2] {
    [(opener, false), (acceptor, true)].map(|(flow, is_reply)| lines(flow.bytes(), is_reply))
}

/// Makes a message of each segment that was not read.
pub(super) fn finish(flow: &Flow, side: Side, parts: &mut Parts) {
    for range in flow.segments_from(parts.read) {
        let words = raw(&flow.bytes()[range.clone()]);
        parts.parts.push(Part { ranges: vec![range], is_reply: side == Side::Acceptor, words });
    }
    parts.read = flow.bytes().len();
}

fn lines(bytes: &[u8], is_reply: bool) -> Parts {
    let mut parts = Parts::default();
    if !is_printable(bytes) {
        return parts;
    }
    while let Some(length) = bytes[parts.read..].iter().position(|byte| *byte == b'\n') {
        let end = parts.read + length + 1;
        let words = raw(bytes[parts.read..end].trim_ascii_end());
        parts.push(end, is_reply, words);
    }
    parts
}
