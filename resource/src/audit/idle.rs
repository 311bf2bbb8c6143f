//! `idle`: the lock was free for longer than the longest retry while somebody waited and nothing was broken.
//!
//! A waiter that is called when the lock comes free, or that asks again from time to time, can't miss it for
//! that long: a wake-up was lost. Free is a lock that no server holds ([`Stored`]); the time begins when it
//! came free, when the waiter began to ask or when the last fault was over, whichever was last.
//!
//! Source: the lost wake-ups of condition variables; Birrell, "An Introduction to Programming with Threads"
//! (1989).

use std::collections::BTreeMap;
use std::time::Duration;

use super::Rules;
use super::faults::Faults;
use super::history::{Event, Nanos};
use super::stored::Stored;
use super::verdict::{VerdictKind, Verdicts};
use crate::vocabulary::{Kind, Name};

pub(super) struct Idle<'h> {
    longest_retry: Duration,
    /// By key: since when each process waits.
    waiting: BTreeMap<&'h Name, BTreeMap<&'h Name, Nanos>>,
    /// For each key, the time since which it was free when it was judged idle.
    convicted: BTreeMap<&'h Name, Nanos>,
}

impl<'h> Idle<'h> {
    /// `None` if the rules don't say how long retries take.
    pub(super) fn of(rules: &Rules) -> Option<Self> {
        let longest_retry = rules.longest_retry?;
        Some(Self { longest_retry, waiting: BTreeMap::new(), convicted: BTreeMap::new() })
    }

    /// Judges what lasted up to `event`, and takes note of it. `stored` and `faults` are those before the
    /// event.
    pub(super) fn observe(
        &mut self,
        event: &'h Event,
        stored: &Stored<'h>,
        faults: &Faults<'h>,
        verdicts: &mut Verdicts,
    ) {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::LeaseRequested { key, .. } => {
                self.waiting.entry(key).or_default().insert(process, at);
            }
            Kind::LeaseRetried { key, .. } => {
                self.waiting.entry(key).or_default().entry(process).or_insert(at);
            }
            Kind::KeyGranted { key, .. } => self.judge(at, key, stored, faults, verdicts),
            Kind::LeaseAcquired { key, .. } | Kind::LeaseNotAcquired { key, .. } => {
                self.judge(at, key, stored, faults, verdicts);
                if let Some(waiting) = self.waiting.get_mut(key) {
                    waiting.remove(process);
                }
            }
            Kind::ProcessCrashed { .. } => {
                self.judge_all(at, stored, faults, verdicts);
                self.waiting.values_mut().for_each(|waiting| {
                    waiting.remove(process);
                });
            }
            _ if faults.is_blow(event) => self.judge_all(at, stored, faults, verdicts),
            _ => {}
        }
    }

    /// Judges all locks up to `at`.
    pub(super) fn judge_all(
        &mut self,
        at: Nanos,
        stored: &Stored<'h>,
        faults: &Faults<'h>,
        verdicts: &mut Verdicts,
    ) {
        let keys: Vec<_> = self.waiting.keys().copied().collect();
        for key in keys {
            self.judge(at, key, stored, faults, verdicts);
        }
    }

    fn judge(
        &mut self,
        at: Nanos,
        key: &'h Name,
        stored: &Stored<'h>,
        faults: &Faults<'h>,
        verdicts: &mut Verdicts,
    ) {
        let (Some((quiet, _)), Some(free)) = (faults.quiet_since(), stored.free_since(key)) else { return };
        let first = self.waiting.get(key).and_then(|waiting| waiting.iter().min_by_key(|(_, since)| **since));
        let Some((waiter, since)) = first else { return };
        let due = quiet.max(free).max(*since).after(self.longest_retry);
        if at <= due || self.convicted.get(key) == Some(&free) {
            return;
        }
        self.convicted.insert(key, free);
        let detail = format!(
            "the lock was free from {free} on, {waiter} had asked for it at {since}, and at {due} nobody had \
             it",
        );
        verdicts.convict(VerdictKind::Idle, due, key, &[waiter], detail);
    }
}
