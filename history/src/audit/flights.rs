//! `computed_twice`: a call of a single-flight computed, although a value that it accepts had been stored
//! before its lease was granted: it did not look again under the lock. `unstored_result`: a call returned a
//! result that the resource never accepted. `old_result`: a call returned a value that it does not accept, or
//! a failure that was stored before it began.
//!
//! A call (`flight_started`) accepts the values whose tokens are above the one that it names. The result of a
//! computation is the write with its token: a value, or the failure that `computation_failed` announces. A
//! call that looks under the lock finds the value that was stored when its lease was granted, unless a
//! failure or, without fencing, an older value has replaced it since. These let it compute again.
//!
//! All of this rests on the events of the resource: without them nothing is judged. If its process crashes,
//! its store may have forgotten results, or stored one whose event is missing. The same is true if its
//! version is not the number of writes that the history has. The stored value then counts no more, nor do the
//! grants so far, and returned results are judged no more for this key.
//!
//! Source: the second check under the lock is that of Schmidt and Harrison, "Double-Checked Locking" (1996);
//! a result that was never accepted is an aborted read (G1a) of Adya, "Weak Consistency" (1999); a failure
//! goes to the calls that wait for it and to no later one, as in the package `singleflight` of Go.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// The flights of all keys, each from its first `flight_started` on.
#[derive(Default)]
pub(super) struct Flights<'h> {
    keys: BTreeMap<&'h Name, Flight<'h>>,
}

/// The calls for the results of one key.
#[derive(Default)]
struct Flight<'h> {
    /// The process of the resource; `None` before its first event.
    resource: Option<&'h Name>,
    /// The number of writes that the resource has stored.
    version: u64,
    /// True if the resource may have a result that the history lacks.
    lacks_results: bool,
    /// The value that the resource has; `None` if it has a failure, or if the history does not tell.
    value: Option<Value>,
    /// The tokens whose results were accepted, each with the number of calls that had begun until then.
    accepted: BTreeMap<u64, u64>,
    /// The tokens whose computations failed.
    failed: BTreeSet<u64>,
    /// The number of calls that have begun.
    begun: u64,
    /// The last call of each process.
    calls: BTreeMap<&'h Name, Call>,
    /// The last grant of each process.
    grants: BTreeMap<&'h Name, Grant>,
}

#[derive(Clone, Copy, Default)]
struct Call {
    /// Its place among the calls, from 1 on.
    number: u64,
    /// The token above which it accepts values.
    above: u64,
}

#[derive(Clone)]
struct Value {
    token: u64,
    /// The process that stored it.
    process: Name,
}

struct Grant {
    token: u64,
    /// The value that a look under the lock finds.
    value: Option<Value>,
}

impl<'h> Judge<'h> for Flights<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        match &event.kind {
            Kind::FlightStarted { key, above } => {
                self.keys.entry(key).or_default().begin(process, *above);
            }
            _ if self.keys.is_empty() => {}
            Kind::ProcessCrashed { .. } => {
                let of_it = self.keys.values_mut().filter(|flight| flight.resource == Some(process));
                of_it.for_each(Flight::forget);
            }
            kind => {
                let Some(key) = kind.key() else { return };
                if let Some(flight) = self.keys.get_mut(key) {
                    flight.observe(key, event, state, verdicts);
                }
            }
        }
    }
}

impl<'h> Flight<'h> {
    fn begin(&mut self, process: &'h Name, above: u64) {
        self.begun += 1;
        self.calls.insert(process, Call { number: self.begun, above });
    }

    fn observe(&mut self, key: &'h Name, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        if event.kind.name().target() == "resource" {
            self.resource = Some(process);
        }
        match &event.kind {
            Kind::LeaseAcquired { token, .. } => {
                let grant = Grant { token: *token, value: self.value.clone() };
                self.grants.insert(process, grant);
            }
            Kind::ResourceRead { version, .. } => self.see(*version),
            Kind::WriteAccepted { owner, token, version, .. } => {
                // The version before this write.
                self.see(version.saturating_sub(1));
                self.version = *version;
                self.accepted.insert(*token, self.begun);
                let is_failure = self.failed.contains(token);
                let process = state.holders.process(key, owner.as_ref(), *token);
                self.store((!is_failure).then_some(Value { token: *token, process }));
            }
            Kind::ComputationFailed { token, .. } => {
                self.failed.insert(*token);
            }
            Kind::ComputationStarted { token, .. } => self.judge_computation(key, event, *token, verdicts),
            Kind::ResultReturned { token, .. } => self.judge_return(key, event, *token, verdicts),
            _ => {}
        }
    }

    /// Compares the version that the resource has with the number of writes in the history.
    fn see(&mut self, version: u64) {
        if version != self.version {
            self.forget();
        }
        self.version = version;
    }

    /// Forgets what the resource has, since the history does not tell it any more.
    fn forget(&mut self) {
        self.value = None;
        self.grants.clear();
        self.lacks_results = true;
    }

    /// Replaces the value of the resource; `None` is a failure. An older value, or a failure, hides the one
    /// that was there at a grant.
    fn store(&mut self, value: Option<Value>) {
        let token = value.as_ref().map_or(0, |value| value.token);
        for grant in self.grants.values_mut() {
            if grant.value.as_ref().is_some_and(|found| found.token > token) {
                grant.value.clone_from(&value);
            }
        }
        self.value = value;
    }

    fn judge_computation(&self, key: &Name, event: &Event, token: u64, verdicts: &mut Verdicts) {
        let Event { at, process, .. } = event;
        let above = self.call(process).above;
        let grant = self.grants.get(process).filter(|grant| grant.token == token);
        let value = grant.and_then(|grant| grant.value.as_ref());
        let Some(value) = value.filter(|value| value.token > above) else { return };
        let detail = format!(
            "{process} computed at {at} with token {token}, although the value with token {} was stored \
             before its lease was granted, and it accepts those above {above}",
            value.token,
        );
        // A process may compute its own value again.
        let processes = [process, &value.process];
        let parties = if value.process == *process { &processes[..1] } else { &processes[..] };
        verdicts.convict(VerdictKind::ComputedTwice, *at, key, parties, detail);
    }

    fn judge_return(&self, key: &Name, event: &Event, token: u64, verdicts: &mut Verdicts) {
        let Event { at, process, .. } = event;
        if self.resource.is_none() || self.lacks_results {
            return;
        }
        let Some(begun_before) = self.accepted.get(&token) else {
            let detail = format!(
                "{process} returned at {at} a result with token {token}, which the resource never accepted"
            );
            return verdicts.convict(VerdictKind::UnstoredResult, *at, key, &[process], detail);
        };
        let Call { number, above } = self.call(process);
        let why = match self.failed.contains(&token) {
            true if *begun_before < number => "a failure that was stored before its call began".to_owned(),
            false if token <= above => format!("although it accepts those above {above}"),
            _ => return,
        };
        let detail = format!("{process} returned at {at} the result with token {token}, {why}");
        verdicts.convict(VerdictKind::OldResult, *at, key, &[process], detail);
    }

    /// Returns the last call of a process.
    fn call(&self, process: &Name) -> Call {
        self.calls.get(process).copied().unwrap_or_default()
    }
}
