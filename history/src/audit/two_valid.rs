//! `two_valid`: at some instant two leases on one key were valid by their holders' own clocks.
//!
//! A lease promises the opposite: while a lease is valid by its holder's clock, no other one is. A pause does
//! not excuse a violation, since a paused holder's clock runs on ([`Beliefs`]). `overlap` is about critical
//! sections, which no lease can keep apart; this is about the lock. Two acquisitions make one verdict,
//! however often they overlap.
//!
//! Source: Gray and Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache
//! Consistency" (1989): correctness depends on clocks whose drift is bounded, and on nothing else.

use std::collections::BTreeSet;

use super::Rules;
use super::beliefs::{Acquisition, Belief};
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::Name;

#[derive(Default)]
pub(super) struct TwoValid<'h> {
    met: BTreeSet<(&'h Name, Acquisition<'h>, Acquisition<'h>)>,
}

impl<'h> Judge<'h> for TwoValid<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        rules.exact.then(Self::default)
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let (at, Some((key, new)), Some(beliefs)) = (event.at, state.began, &state.beliefs) else { return };
        if new.until <= at {
            return;
        }
        for old in beliefs.valid(key, at).filter(|old| old.by != new.by) {
            if self.met.insert((key, old.by.min(new.by), old.by.max(new.by))) {
                convict(at, key, old, &new, verdicts);
            }
        }
    }
}

fn convict(at: Nanos, key: &Name, old: &Belief<'_>, new: &Belief<'_>, verdicts: &mut Verdicts) {
    let detail = format!(
        "the lease of {} (token {}) was valid by its own clock until {}, and from {at} on that of {} (token \
         {}) was too",
        old.by.process, old.token, old.until, new.by.process, new.token,
    );
    verdicts.convict(VerdictKind::TwoValid, at, key, &[old.by.process, new.by.process], detail);
}
