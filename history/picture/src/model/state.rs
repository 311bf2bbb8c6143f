//! The state of the world according to the history, and its change by each event.

use std::collections::{BTreeMap, BTreeSet};

use history::text::{Names, short};
use history::{Beliefs, Effect, Event, Kind, Name, Nanos};

/// A change of one fact of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The fact, such as `redis-1 stores orders:42`.
    pub fact: String,
    /// Its value before the event.
    pub before: String,
    /// Its value after the event.
    pub after: String,
    /// True if it changed by time alone since the previous event: the validity of a lease ended.
    pub is_by_time: bool,
}

/// The facts so far. A fact without an entry has its initial value.
pub(super) struct World<'a> {
    names: &'a Names,
    facts: BTreeMap<String, String>,
    changes: Vec<Change>,
    beliefs: Beliefs<'a>,
    /// The leases that holders trust, by their facts: the token, and the true time at which the trust ends.
    trusted: BTreeMap<String, (u64, Nanos)>,
    /// The version and the highest token so far of the data that a resource stores, by fact.
    stored: BTreeMap<String, (u64, u64)>,
    /// The pauses in force, by process.
    pauses: BTreeMap<Name, BTreeSet<u64>>,
}

impl<'a> World<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Self {
            names,
            facts: BTreeMap::new(),
            changes: Vec::new(),
            beliefs: Beliefs::default(),
            trusted: BTreeMap::new(),
            stored: BTreeMap::new(),
            pauses: BTreeMap::new(),
        }
    }

    /// Returns the facts that have changed since the last call.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Follows the next event.
    pub(super) fn observe(&mut self, event: &'a Event) {
        self.expire(event.at);
        self.beliefs.observe(event);
        self.change(event);
        self.trust();
    }

    /// Ends the leases whose validity is over at `now`.
    fn expire(&mut self, now: Nanos) {
        let over = self.trusted.iter().filter(|(_, (_, until))| *until <= now);
        let over: Vec<String> = over.map(|(fact, _)| fact.clone()).collect();
        for fact in over {
            let Some((token, until)) = self.trusted.remove(&fact) else { continue };
            let is_there = self.facts.get(&fact).is_some_and(|value| value.starts_with("trusts"));
            if is_there {
                self.set(fact, "no lease", format!("trusts no lease: token {token} was valid until {until}"));
                self.changes.iter_mut().for_each(|change| change.is_by_time = true);
            }
        }
    }

    /// Updates the ends of the leases that are trusted: a change of a clock's rate moves them.
    fn trust(&mut self) {
        let all: Vec<_> = self.beliefs.all().map(|(key, belief)| (key.clone(), *belief)).collect();
        for (key, belief) in all {
            let fact = self.of(belief.by.process.as_str(), &key);
            if let Some(trusted) = self.trusted.get_mut(&fact).filter(|(token, _)| *token == belief.token)
                && trusted.1 != belief.until
            {
                trusted.1 = belief.until;
                self.set(fact, "no lease", trusts(belief.token, Some(belief.until)));
            }
        }
    }

    fn change(&mut self, event: &Event) {
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
            | Kind::LeaseRenewed { key, token, valid_micros, .. }
            | Kind::LeaseTtlChanged { key, token, valid_micros, .. } => {
                self.granted(event, key, *token, valid_micros.is_some());
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
                self.written(process, key, Some(*version), Some(*token));
            }
            Kind::WriteRejected { key, seen, .. } | Kind::ReadRejected { key, seen, .. } => {
                self.written(process, key, None, Some(*seen));
            }
            Kind::FenceSet { key, token, .. } => self.written(process, key, None, Some(*token)),
            Kind::ConditionalAccepted { key, version, .. } => {
                self.written(process, key, Some(*version), None);
            }
            Kind::ResourceRead { key, version, seen, .. } if *seen > 0 => {
                self.written(process, key, Some(*version), Some(*seen));
            }
            Kind::FaultApplied { effect, detail, fault, .. } => {
                self.fault(&event.process, effect, *fault, detail.as_str());
            }
            Kind::FaultHealed { effect, fault, .. } => self.healed(&event.process, effect, *fault),
            Kind::ProcessCrashed { .. } => self.crash(&event.process),
            Kind::ServerStopped { .. } => self.set(process.to_owned(), "runs", "down"),
            Kind::ServerStarted { .. } => self.set(process.to_owned(), "runs", "runs"),
            _ => {}
        }
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

    /// Notes a grant or a renewal, which the holder trusts for as long as it is valid by the holder's clock.
    fn granted(&mut self, event: &Event, key: &Name, token: u64, is_limited: bool) {
        let process = event.process.as_str();
        let fact = self.of(process, key);
        let belief = self.beliefs.all().find(|(of, belief)| {
            *of == key && belief.by.process.as_str() == process && belief.token == token
        });
        let until = belief.filter(|_| is_limited).map(|(_, belief)| belief.until);
        match until {
            Some(until) => self.trusted.insert(fact.clone(), (token, until)),
            None => self.trusted.remove(&fact),
        };
        self.set(fact, "no lease", trusts(token, until));
    }

    /// Notes the data that a resource stores, as far as the event says. A token below the highest one so far
    /// does not replace it, even if the resource accepts its write.
    fn written(&mut self, process: &str, key: &Name, version: Option<u64>, token: Option<u64>) {
        let fact = format!("{process}: {}", self.names.key(key));
        let stored = self.stored.entry(fact.clone()).or_default();
        stored.0 = version.unwrap_or(stored.0);
        stored.1 = stored.1.max(token.unwrap_or(0));
        let highest =
            if stored.1 > 0 { format!(", highest token so far {}", stored.1) } else { String::new() };
        let value = format!("version {}{highest}", stored.0);
        self.set(fact, "never written", value);
    }

    fn fault(&mut self, process: &Name, effect: &Effect, fault: u64, detail: &str) {
        match effect {
            Effect::Pause => {
                self.pauses.entry(process.clone()).or_default().insert(fault);
                self.set(process.to_string(), "runs", "paused");
            }
            Effect::Down => self.crash(process),
            Effect::Clock(_) => self.set(format!("{process}'s clock"), "true", detail),
            Effect::LookUps(_) => self.set(format!("fault {} of lookups", fault + 1), "none", detail),
            Effect::Link { .. } if !effect.is_instant() => {
                self.set(format!("fault {} on links", fault + 1), "none", detail);
            }
            Effect::Link { .. } | Effect::Role(_) | Effect::Instant(_) => {}
        }
    }

    fn healed(&mut self, process: &Name, effect: &Effect, fault: u64) {
        match effect {
            Effect::Pause => {
                let pauses = self.pauses.entry(process.clone()).or_default();
                // A process with overlapping pauses resumes when the last one ends.
                if pauses.remove(&fault) && pauses.is_empty() {
                    self.set(process.to_string(), "runs", "runs");
                }
            }
            Effect::Down => self.set(process.to_string(), "runs", "runs"),
            Effect::Clock(_) => self.set(format!("{process}'s clock"), "true", "runs at the true rate"),
            Effect::Link { .. } => self.set(format!("fault {} on links", fault + 1), "none", "none"),
            Effect::LookUps(_) => self.set(format!("fault {} of lookups", fault + 1), "none", "none"),
            Effect::Role(_) | Effect::Instant(_) => {}
        }
    }

    /// Forgets the leases of the process, and leaves its sections.
    fn crash(&mut self, process: &Name) {
        self.pauses.remove(process);
        self.set(process.to_string(), "runs", "down");
        for (prefix, value) in
            [(format!("{process} on "), "no lease"), (format!("{process}'s section"), "outside")]
        {
            let facts: Vec<String> =
                self.facts.keys().filter(|fact| fact.starts_with(&prefix)).cloned().collect();
            facts.into_iter().for_each(|fact| self.set(fact, value, value));
        }
    }

    /// Sets a fact, whose initial value is `first`.
    fn set(&mut self, fact: String, first: &str, value: impl Into<String>) {
        let (before, after) =
            (self.facts.get(&fact).cloned().unwrap_or_else(|| first.to_owned()), value.into());
        if before != after {
            self.facts.insert(fact.clone(), after.clone());
            self.changes.push(Change { fact, before, after, is_by_time: false });
        }
    }
}

/// Describes the trust of a holder in its lease.
fn trusts(token: u64, until: Option<Nanos>) -> String {
    let until = until.map_or(String::new(), |until| format!(" until {until}"));
    format!("trusts token {token}{until}")
}
