//! One direction of a connection: its bytes as a stream, and where each segment of it begins.

use std::ops::Range;

use history::{Fate, Nanos};

use crate::world::capture::{Connection, Passage, Side};

/// The bytes that one end of a connection sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    bytes: Vec<u8>,
    /// The segments, in order; none is empty.
    segments: Vec<Piece>,
}

/// A segment of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    range: Range<usize>,
    sent: u64,
    passage: Passage,
}

impl Flow {
    /// Returns all that `side` sent, and what it tried to send after a reset.
    pub(super) fn new(connection: &Connection, side: Side) -> Self {
        let mut flow = Self::default();
        let all = connection.segments.iter().chain(&connection.unsent);
        for segment in all.filter(|segment| segment.from == side) {
            let start = flow.bytes.len();
            flow.bytes.extend_from_slice(&segment.bytes);
            let (range, sent, passage) = (start..flow.bytes.len(), segment.sent, segment.passage);
            if !range.is_empty() {
                flow.segments.push(Piece { range, sent, passage });
            }
        }
        flow
    }

    /// Returns all bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the places of the segments from `start` on; the first one may be the rest of a segment.
    pub(super) fn segments_from(&self, start: usize) -> impl Iterator<Item = Range<usize>> {
        let ranges = self.segments.iter().map(move |piece| piece.range.start.max(start)..piece.range.end);
        ranges.filter(|range| !range.is_empty())
    }

    /// Returns the time at which the byte at `at` was sent; `None` if there is no such byte.
    pub(super) fn sent(&self, at: usize) -> Option<u64> {
        self.piece(at).map(|piece| piece.sent)
    }

    /// Copies the bytes of `ranges`, as far as they exist.
    pub(super) fn copy(&self, ranges: &[Range<usize>]) -> Vec<u8> {
        ranges.iter().filter_map(|range| self.bytes.get(range.clone())).flatten().copied().collect()
    }

    /// Returns when the first byte of `ranges` was sent, and what became of all of them. `None` if they are
    /// empty.
    pub(super) fn passage(&self, ranges: &[Range<usize>]) -> Option<(Nanos, Fate)> {
        let first = ranges.iter().find(|range| !range.is_empty())?;
        let sent = self.sent(first.start)?;
        let overlaps = |piece: &&Piece| {
            ranges.iter().any(|range| range.start < piece.range.end && piece.range.start < range.end)
        };
        let passages = self.segments.iter().filter(overlaps).map(|piece| piece.passage);
        passages.map(fate).reduce(worse).map(|fate| (Nanos(sent), fate))
    }

    fn piece(&self, at: usize) -> Option<&Piece> {
        let number = self.segments.partition_point(|piece| piece.range.end <= at);
        self.segments.get(number)
    }
}

/// Returns what became of a message with this passage.
pub(super) fn fate(passage: Passage) -> Fate {
    match passage {
        Passage::Arrives(at) => Fate::Arrived { at: Nanos(at), held: false },
        Passage::Released { arrives: at, .. } => Fate::Arrived { at: Nanos(at), held: true },
        Passage::Held => Fate::Held,
        Passage::Lost(at) => Fate::Lost { at: Nanos(at) },
    }
}

/// Returns the fate of a message of two parts with these fates: it arrives if both do, with the later one.
fn worse(one: Fate, other: Fate) -> Fate {
    match (one, other) {
        (Fate::Lost { at: one }, Fate::Lost { at: other }) => Fate::Lost { at: one.min(other) },
        (lost @ Fate::Lost { .. }, _) | (_, lost @ Fate::Lost { .. }) => lost,
        (Fate::Held, _) | (_, Fate::Held) => Fate::Held,
        (Fate::Arrived { at: one, held }, Fate::Arrived { at: other, held: too }) => {
            Fate::Arrived { at: one.max(other), held: held || too }
        }
    }
}
