//! `two_valid`: at some instant two leases on one key were valid by their holders' own clocks, or, of N
//! permits, more than N.
//!
//! A lease promises the opposite: while a lease is valid by its holder's clock, no other one is (or no more
//! than the key's [`Capacity`](super::Capacity)). A pause does
//! not excuse a violation, since a paused holder's clock runs on ([`Beliefs`]). `overlap` is about critical
//! sections, which no lease can keep apart; this is about the lock. The same acquisitions make one verdict,
//! however often they overlap.
//!
//! Source: Gray and Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache
//! Consistency" (1989): correctness depends on clocks whose drift is bounded, and on nothing else.

use std::collections::BTreeSet;

use super::Rules;
use super::beliefs::{Acquisition, Belief};
use super::capacity::joined;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::Name;

#[derive(Default)]
pub(super) struct TwoValid<'h> {
    /// By key: acquisitions whose leases were valid together, in order.
    met: BTreeSet<(&'h Name, Vec<Acquisition<'h>>)>,
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
        let live: Vec<&Belief<'h>> = beliefs.valid(key, at).filter(|old| old.by != new.by).collect();
        for valid in state.capacities.crowded(key, &live, &new, |belief| belief.by.owner) {
            let mut met: Vec<_> = valid.iter().map(|old| old.by).chain([new.by]).collect();
            met.sort_unstable();
            if self.met.insert((key, met)) {
                convict(at, key, &valid, &new, verdicts);
            }
        }
    }
}

fn convict(at: Nanos, key: &Name, valid: &[&Belief<'_>], new: &Belief<'_>, verdicts: &mut Verdicts) {
    let grant = |belief: &Belief<'_>| format!("{} (token {})", belief.by.process, belief.token);
    let detail = match valid {
        [old] => format!(
            "the lease of {} was valid by its own clock until {}, and from {at} on that of {} was too",
            grant(old),
            old.until,
            grant(new),
        ),
        _ => format!(
            "the leases of {} were valid by their own clocks, and from {at} on that of {} was too",
            joined(&valid.iter().map(|old| grant(old)).collect::<Vec<_>>()),
            grant(new),
        ),
    };
    let processes: Vec<&Name> = valid.iter().map(|old| old.by.process).chain([new.by.process]).collect();
    verdicts.convict(VerdictKind::TwoValid, at, key, &processes, detail);
}
