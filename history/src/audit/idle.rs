//! `idle`: the lock was free for longer than the longest retry delay, a waiter was left waiting, and no fault
//! was in force.
//!
//! A waiter that is woken when the lock becomes free, or that retries from time to time, can't miss it for
//! that long: a wake-up was lost. A lock is free if no server stores its key, or fewer owners than it has
//! permits ([`Stored`](super::stored::Stored)). The time counts from when it became free, the waiter began to
//! wait or the last fault ended, whichever was last. A waiter for which a permit is stored has missed none:
//! it waits for its answer, whatever other permits are left.
//!
//! Source: the lost wake-ups of condition variables; Birrell, "An Introduction to Programming with Threads"
//! (1989).

use std::collections::BTreeMap;
use std::time::Duration;

use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use super::{Capacity, Rules};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

pub(super) struct Idle<'h> {
    longest_retry: Duration,
    /// The time since which each process waits, and the owner for which it asked, by key.
    waiting: BTreeMap<&'h Name, BTreeMap<&'h Name, (Nanos, &'h Name)>>,
    /// For each key, the time since which it was free when it was judged idle.
    convicted: BTreeMap<&'h Name, Nanos>,
}

impl<'h> Judge<'h> for Idle<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        let longest_retry = rules.longest_retry?;
        Some(Self { longest_retry, waiting: BTreeMap::new(), convicted: BTreeMap::new() })
    }

    fn until(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } => {
                self.waiting.entry(key).or_default().insert(process, (at, owner));
            }
            Kind::LeaseRetried { key, owner, .. } => {
                self.waiting.entry(key).or_default().entry(process).or_insert((at, owner)).1 = owner;
            }
            Kind::KeyGranted { key, .. } => self.judge(at, key, state, verdicts),
            Kind::LeaseAcquired { key, .. } | Kind::LeaseNotAcquired { key, .. } => {
                self.judge(at, key, state, verdicts);
                if let Some(waiting) = self.waiting.get_mut(key) {
                    waiting.remove(process);
                }
            }
            Kind::ProcessCrashed { .. } => {
                self.judge_all(at, state, verdicts);
                self.waiting.values_mut().for_each(|waiting| {
                    waiting.remove(process);
                });
            }
            _ if state.faults.begins_fault(event) => self.judge_all(at, state, verdicts),
            _ => {}
        }
    }

    fn observe(&mut self, _: &'h Event, _: &State<'h>, _: &mut Verdicts) {}

    fn finish(&mut self, end: Nanos, state: &State<'h>, verdicts: &mut Verdicts) {
        self.judge_all(end, state, verdicts);
    }
}

impl<'h> Idle<'h> {
    /// Judges all locks up to `at`.
    fn judge_all(&mut self, at: Nanos, state: &State<'h>, verdicts: &mut Verdicts) {
        let keys: Vec<_> = self.waiting.keys().copied().collect();
        for key in keys {
            self.judge(at, key, state, verdicts);
        }
    }

    fn judge(&mut self, at: Nanos, key: &'h Name, state: &State<'h>, verdicts: &mut Verdicts) {
        let Some(stored) = &state.stored else { return };
        let (Some(quiet), Some(free)) = (state.faults.quiet_since(), stored.free_since(key)) else { return };
        let waiting = self.waiting.get(key).into_iter().flatten();
        let unserved = waiting.filter(|(_, (_, owner))| !stored.holds(key, owner));
        let Some((waiter, (since, _))) = unserved.min_by_key(|(_, (since, _))| *since) else { return };
        let due = quiet.max(free).max(*since).after(self.longest_retry);
        if at <= due || self.convicted.get(key) == Some(&free) {
            return;
        }
        self.convicted.insert(key, free);
        let what = if matches!(state.capacities.of_key(key), Capacity::Permits(_)) {
            "a permit"
        } else {
            "the lock"
        };
        let detail = format!(
            "{what} was free from {free} on, {waiter} had asked for it at {since}, and at {due} nobody had \
             it",
        );
        verdicts.convict_absence(VerdictKind::Idle, due, key, &[waiter], detail);
    }
}
