//! The state of the world as the history tells it, and how each event changes it.

use std::collections::BTreeMap;

use resource::audit::{Event, Kind, Name, Nanos};

use crate::text::{Names, short};

/// A change of the state: of one fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The fact, such as `redis-1 stores orders:42`.
    pub fact: String,
    /// Its value before the event.
    pub before: String,
    /// Its value after the event.
    pub after: String,
}

/// The facts so far. A fact without an entry has its first value.
pub(super) struct World<'a> {
    names: &'a Names,
    facts: BTreeMap<String, String>,
    changes: Vec<Change>,
}

impl<'a> World<'a> {
    pub(super) const fn new(names: &'a Names) -> Self {
        Self { names, facts: BTreeMap::new(), changes: Vec::new() }
    }

    /// Takes the next event; returns the facts that it changes.
    pub(super) fn observe(&mut self, event: &Event) -> Vec<Change> {
        let process = event.process.as_str();
        match &event.kind {
            Kind::KeyGranted { key, owner, .. } | Kind::KeyExtended { key, owner, .. } => {
                self.set(self.stores(process, key), "nothing", format!("for {}", short(owner)));
            }
            Kind::KeyDeleted { key, .. } | Kind::KeyExpired { key, .. } => {
                self.set(self.stores(process, key), "nothing", "nothing");
            }
            Kind::LeaseRequested { key, .. } | Kind::LeaseRetried { key, .. } => {
                self.set(self.of(process, key), "no lease", "asks");
            }
            Kind::LeaseQueued { key, position, .. } => {
                self.set(self.of(process, key), "no lease", format!("waits, queued at {position}"));
            }
            Kind::LeaseAcquired { key, token, valid_micros, .. }
            | Kind::LeaseRenewed { key, token, valid_micros, .. } => {
                let until = valid_micros.map_or(String::new(), |micros| {
                    let until = event.at.0.saturating_add(micros.saturating_mul(1000));
                    format!(" until {}", Nanos(until))
                });
                self.set(self.of(process, key), "no lease", format!("trusts token {token}{until}"));
            }
            Kind::LeaseNotAcquired { key, .. }
            | Kind::LeaseLost { key, .. }
            | Kind::LeaseReleased { key, .. } => self.set(self.of(process, key), "no lease", "no lease"),
            Kind::LeaseReleaseRequested { key, .. } => {
                self.set(self.of(process, key), "no lease", "releases");
            }
            Kind::SectionEntered { key, token, .. } => {
                self.set(self.section(process, key), "outside", format!("inside with token {token}"));
            }
            Kind::SectionLeft { key, .. } => self.set(self.section(process, key), "outside", "outside"),
            Kind::WriteAccepted { key, token, version, .. } => {
                let value = format!("version {version}, highest token {token}");
                self.set(format!("{process}: {}", self.names.key(key)), "never written", value);
            }
            Kind::ConditionalAccepted { key, version, .. } => {
                let value = format!("version {version}");
                self.set(format!("{process}: {}", self.names.key(key)), "never written", value);
            }
            Kind::ResourceRead { key, token: Some(token), version, .. } => {
                let value = format!("version {version}, highest token {token}");
                self.set(format!("{process}: {}", self.names.key(key)), "never written", value);
            }
            Kind::FaultApplied { verb, detail, fault } => {
                self.fault(process, verb.as_str(), *fault, detail.as_str());
            }
            Kind::FaultHealed { verb, fault, .. } => self.healed(process, verb.as_str(), *fault),
            Kind::ProcessCrashed { .. } => self.crash(process),
            Kind::ServerStopped { .. } => self.set(process.to_owned(), "runs", "down"),
            Kind::ServerStarted { .. } => self.set(process.to_owned(), "runs", "runs"),
            _ => {}
        }
        std::mem::take(&mut self.changes)
    }

    fn stores(&self, process: &str, key: &Name) -> String {
        format!("{process} stores {}", self.names.key(key))
    }

    fn of(&self, process: &str, key: &Name) -> String {
        format!("{process} on {}", self.names.key(key))
    }

    fn section(&self, process: &str, key: &Name) -> String {
        format!("{process}'s section of {}", self.names.key(key))
    }

    fn fault(&mut self, process: &str, verb: &str, fault: u64, detail: &str) {
        match verb {
            "pause" => self.set(process.to_owned(), "runs", "paused"),
            "reset" | "cancel" | "evict" | "lead" | "resume" => {}
            "step" | "slew" | "rate" => self.set(format!("{process}'s clock"), "true", detail),
            _ => self.set(format!("fault {} on links", fault + 1), "none", detail),
        }
    }

    fn healed(&mut self, process: &str, verb: &str, fault: u64) {
        match verb {
            "pause" | "crash" | "stop" => self.set(process.to_owned(), "runs", "runs"),
            "slew" | "rate" => self.set(format!("{process}'s clock"), "true", "runs at the true rate"),
            "cut" | "delay" | "partition" => {
                self.set(format!("fault {} on links", fault + 1), "none", "none");
            }
            _ => {}
        }
    }

    /// The process forgets its leases and leaves its sections.
    fn crash(&mut self, process: &str) {
        self.set(process.to_owned(), "runs", "down");
        for (prefix, value) in
            [(format!("{process} on "), "no lease"), (format!("{process}'s section"), "outside")]
        {
            let facts: Vec<String> =
                self.facts.keys().filter(|fact| fact.starts_with(&prefix)).cloned().collect();
            facts.into_iter().for_each(|fact| self.set(fact, value, value));
        }
    }

    /// Sets a fact, which is `first` if it was never set.
    fn set(&mut self, fact: String, first: &str, value: impl Into<String>) {
        let (before, after) =
            (self.facts.get(&fact).cloned().unwrap_or_else(|| first.to_owned()), value.into());
        if before != after {
            self.facts.insert(fact.clone(), after.clone());
            self.changes.push(Change { fact, before, after });
        }
    }
}
