//! The interface of a judge, and the state of a history that judges share.

use super::Rules;
use super::beliefs::{Belief, Beliefs};
use super::capacity::Capacities;
use super::faults::Faults;
use super::holders::Holders;
use super::stored::{Entry, Stored};
use super::verdict::Verdicts;
use crate::events::{Event, Nanos};
use crate::vocabulary::Name;

/// A judge of one family of verdicts.
pub(super) trait Judge<'h> {
    /// Creates the judge; `None` if the rules lack what it needs.
    fn of(rules: &Rules) -> Option<Self>
    where
        Self: Sized;

    /// Judges the time up to `event`. `state` is the state before it.
    fn until(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let _ = (event, state, verdicts);
    }

    /// Judges `event`. `state` is the state after it.
    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts);

    /// Judges the state at the end of the history.
    fn finish(&mut self, end: Nanos, state: &State<'h>, verdicts: &mut Verdicts) {
        let _ = (end, state, verdicts);
    }
}

/// The state of a history, as far as it has been observed.
pub(super) struct State<'h> {
    pub(super) holders: Holders<'h>,
    pub(super) capacities: Capacities<'h>,
    /// The leases that holders trust; `None` if the times of events are not exact.
    pub(super) beliefs: Option<Beliefs<'h>>,
    /// The keys on the servers; `None` if the history has no events of theirs.
    pub(super) stored: Option<Stored<'h>>,
    pub(super) faults: Faults<'h>,
    /// The key and the belief that the last event began or prolonged.
    pub(super) began: Option<(&'h Name, Belief<'h>)>,
    /// The key that the last event removed from a server.
    pub(super) removed: Option<Entry<'h>>,
}

impl<'h> State<'h> {
    pub(super) fn of(rules: &Rules) -> Self {
        Self {
            holders: Holders::default(),
            capacities: Capacities::of(rules),
            beliefs: rules.exact.then(Beliefs::default),
            stored: Stored::of(rules),
            faults: Faults::of(rules),
            began: None,
            removed: None,
        }
    }

    pub(super) fn observe(&mut self, event: &'h Event) {
        self.holders.observe(event);
        self.capacities.observe(event);
        self.removed = self.stored.as_mut().and_then(|stored| stored.observe(event));
        self.faults.observe(event);
        self.began = self.beliefs.as_mut().and_then(|beliefs| beliefs.observe(event));
    }
}
