//! Bars that one event opens and another one closes.

use std::collections::BTreeMap;

use history::Nanos;

use super::{Edge, Span, SpanKind};

/// The identity of an open bar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) lane: usize,
    pub(super) kind: SpanKind,
    /// The owner, the key or the fault.
    pub(super) of: String,
}

/// The colour, the label and the key of a bar.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) hue: Option<usize>,
    pub(super) label: String,
    pub(super) key: Option<usize>,
}

#[derive(Default)]
pub(super) struct Bars {
    done: Vec<Span>,
    open: BTreeMap<Id, (Edge, Look)>,
}

impl Id {
    pub(super) fn new(lane: usize, kind: SpanKind, of: impl Into<String>) -> Self {
        Self { lane, kind, of: of.into() }
    }
}

impl Bars {
    /// Opens a bar, unless it is open already.
    pub(super) fn open(&mut self, id: Id, from: Edge, look: Look) {
        self.open.entry(id).or_insert((from, look));
    }

    pub(super) fn relabel(&mut self, id: &Id, label: String) {
        if let Some((_, look)) = self.open.get_mut(id) {
            look.label = label;
        }
    }

    /// Closes a bar. Returns false if it was not open.
    pub(super) fn close(&mut self, id: &Id, to: Edge) -> bool {
        let Some((from, look)) = self.open.remove(id) else { return false };
        self.add(id, from, to, look);
        true
    }

    /// Closes all bars for which `is_meant` returns true.
    pub(super) fn close_all(&mut self, to: Edge, is_meant: impl Fn(&Id) -> bool) {
        let meant: Vec<Id> = self.open.keys().filter(|id| is_meant(id)).cloned().collect();
        for id in meant {
            self.close(&id, to);
        }
    }

    /// Adds a whole bar.
    pub(super) fn add(&mut self, id: &Id, from: Edge, to: Edge, look: Look) {
        let Look { hue, label, key } = look;
        self.done.push(Span { lane: id.lane, kind: id.kind, from, to, hue, label, key, slot: 0 });
    }

    /// Returns all bars, in the order of lanes and times. Open bars end at `end`.
    pub(super) fn finish(mut self, end: Nanos) -> Vec<Span> {
        self.close_all(Edge { at: end, mark: None }, |_| true);
        self.done.sort_by_key(|span| (span.lane, span.kind, span.from.at, span.from.mark));
        place(&mut self.done);
        self.done
    }
}

/// Gives overlapping bars of one kind in one lane different slots. Expects the bars in order.
fn place(spans: &mut [Span]) {
    let mut ends: Vec<Nanos> = Vec::new();
    let mut group = None;
    for span in spans {
        if group != Some((span.lane, span.kind)) {
            group = Some((span.lane, span.kind));
            ends.clear();
        }
        let free = ends.iter().position(|end| *end <= span.from.at);
        span.slot = free.unwrap_or(ends.len());
        match free {
            Some(slot) => ends[slot] = span.to.at,
            None => ends.push(span.to.at),
        }
    }
}
