//! The readers that starve a writer: leases for reading that were granted anew although a writer has waited
//! for long, and no other writer had the lock meanwhile.
//!
//! A writer must wait for the readers before it, for as long as they renew their leases. If new ones are let
//! in all the time, it waits for ever. `stuck` therefore does not count the leases of those that came too
//! late. With sessions, where the lock is a queue, `unfair` judges the order instead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ends::Ends;
use crate::events::Nanos;
use crate::vocabulary::Name;

/// The requests for reading of one lock, and the end of its last lease for writing.
#[derive(Default)]
pub(super) struct Starved<'h> {
    readers: BTreeSet<&'h Name>,
    wrote: Nanos,
}

impl<'h> Starved<'h> {
    /// Notes that the request of `owner` is for reading.
    pub(super) fn reads(&mut self, owner: &'h Name) {
        self.readers.insert(owner);
    }

    /// Notes a lease of `owner`, which has to be over at `over`.
    pub(super) fn grant(&mut self, owner: &Name, over: Nanos) {
        if !self.readers.contains(owner) {
            self.wrote = over.max(self.wrote);
        }
    }

    /// Notes that the lease of `owner` is over at `at`.
    pub(super) fn end(&mut self, owner: &Name, at: Nanos) {
        if !self.readers.contains(owner) {
            self.wrote = at;
        }
    }

    /// Returns true if a grant to `owner` at `at` is a new one for reading, and one of the writers in
    /// `waiting` had waited for longer than `patience`, counted from `healed` or the last writer's end at the
    /// earliest.
    pub(super) fn starves(
        &self,
        owner: &Name,
        at: Nanos,
        ends: &Ends<'h>,
        waiting: &BTreeMap<(&'h Name, &'h Name), Nanos>,
        (healed, patience): (Nanos, Duration),
    ) -> bool {
        if !self.readers.contains(owner) || ends.knows(owner) {
            return false;
        }
        let mut writers = waiting.iter().filter(|((waiter, _), _)| !self.readers.contains(waiter));
        writers.any(|(_, since)| at > healed.max(self.wrote).max(*since).after(patience))
    }
}
