//! The durations in a history: pauses, times without life, critical sections, the leases that clients believe
//! in and those that servers have stored.

use std::collections::BTreeMap;

use history::text::{Names, short};
use history::{Effect, Event, Kind, Name, TRUE_RATE};

/// A duration of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) process: Name,
    /// The name of its track; slices that overlap get tracks of their own.
    pub(super) lane: String,
    pub(super) name: String,
    /// True times, in nanoseconds since the run began.
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// The identity of a slice that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Down,
    Pause(u64),
    Section(Name, Name),
    Belief(Name, Name),
    /// A server's key; it has one owner at a time.
    Stored(Name),
}

struct Open {
    lane: String,
    name: String,
    begin: u64,
    /// The time at which it ends by itself.
    until: u64,
}

struct Reader<'a> {
    names: &'a Names,
    open: BTreeMap<(Name, Key), Open>,
    rates: BTreeMap<Name, u64>,
    slices: Vec<Slice>,
}

/// Returns the durations in a history that ends at `end`, ordered by their beginnings.
pub(super) fn slices(events: &[Event], names: &Names, end: u64) -> Vec<Slice> {
    let mut reader = Reader { names, open: BTreeMap::new(), rates: BTreeMap::new(), slices: Vec::new() };
    for event in events {
        reader.read(event);
    }
    let open: Vec<_> = reader.open.keys().cloned().collect();
    for (process, key) in open {
        reader.close(&process, &key, end);
    }
    reader.slices.sort_by_key(|slice| slice.begin);
    reader.slices
}

impl Reader<'_> {
    fn read(&mut self, event: &Event) {
        let (process, at) = (&event.process, event.at.0);
        match &event.kind {
            Kind::FaultApplied { fault, effect: Effect::Pause, detail, .. } => {
                self.open(event, Key::Pause(*fault), "paused".to_owned(), detail.to_string());
            }
            Kind::FaultHealed { fault, .. } => self.close(process, &Key::Pause(*fault), at),
            Kind::ProcessCrashed { detail } => {
                self.end_life(process, at);
                let detail = detail.as_ref().map_or("crashed", Name::as_str);
                self.open(event, Key::Down, "dead".to_owned(), detail.to_owned());
            }
            _ => self.read_lease(event),
        }
        // Only a living process has events of its own.
        let is_own = !matches!(
            event.kind,
            Kind::ProcessCrashed { .. }
                | Kind::FaultApplied { .. }
                | Kind::FaultHealed { .. }
                | Kind::ServerStopped { .. }
                | Kind::ClockRate { .. }
        );
        if is_own {
            self.close(process, &Key::Down, at);
        }
    }

    fn read_lease(&mut self, event: &Event) {
        let (process, at) = (&event.process, event.at.0);
        match &event.kind {
            Kind::SectionEntered { key, owner, token } => {
                let lane = format!("section of {}", self.names.key(key));
                self.open(event, Key::Section(key.clone(), owner.clone()), lane, format!("token {token}"));
            }
            Kind::SectionLeft { key, owner, .. } => {
                self.close(process, &Key::Section(key.clone(), owner.clone()), at);
            }
            Kind::LeaseAcquired { key, owner, token, valid_micros: Some(valid), .. }
            | Kind::LeaseRenewed { key, owner, token, valid_micros: Some(valid), .. }
            | Kind::LeaseTtlChanged { key, owner, token, valid_micros: Some(valid), .. } => {
                self.believe(event, (key, owner), *token, *valid);
            }
            Kind::LeaseLost { key, owner, .. } | Kind::LeaseReleaseRequested { key, owner, .. } => {
                self.close(process, &Key::Belief(key.clone(), owner.clone()), at);
            }
            Kind::KeyGranted { key, owner, .. } => {
                self.close(process, &Key::Stored(key.clone()), at);
                let lane = format!("stores {}", self.names.key(key));
                self.open(event, Key::Stored(key.clone()), lane, short(owner).to_owned());
            }
            Kind::KeyDeleted { key, .. } | Kind::KeyExpired { key, .. } => {
                self.close(process, &Key::Stored(key.clone()), at);
            }
            Kind::ClockRate { rate } => {
                self.rates.insert(process.clone(), (*rate).max(1));
            }
            _ => {}
        }
    }

    /// Begins or prolongs the belief of a client in its lease, which is valid for so long by its clock.
    fn believe(&mut self, event: &Event, (key, owner): (&Name, &Name), token: u64, valid_micros: u64) {
        let rate = self.rates.get(&event.process).copied().unwrap_or(TRUE_RATE);
        let nanos = u128::from(valid_micros) * 1000 * u128::from(TRUE_RATE) / u128::from(rate);
        let until = event.at.0.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX));
        let place = (event.process.clone(), Key::Belief(key.clone(), owner.clone()));
        // A belief that had ended by itself begins anew.
        if self.open.get(&place).is_some_and(|open| open.until < event.at.0) {
            self.close(&place.0, &place.1, event.at.0);
        }
        if !self.open.contains_key(&place) {
            let lane = format!("trusts its lease of {}", self.names.key(key));
            self.open(event, place.1.clone(), lane, format!("token {token}"));
        }
        if let Some(open) = self.open.get_mut(&place) {
            open.until = until;
        }
    }

    fn open(&mut self, event: &Event, key: Key, lane: String, name: String) {
        let open = Open { lane, name, begin: event.at.0, until: u64::MAX };
        self.open.entry((event.process.clone(), key)).or_insert(open);
    }

    /// Ends a slice, if it is open, at `at` or earlier, when it ended by itself.
    fn close(&mut self, process: &Name, key: &Key, at: u64) {
        let Some(open) = self.open.remove(&(process.clone(), key.clone())) else { return };
        let Open { lane, name, begin, until } = open;
        // No slice is empty, as its end would precede its beginning.
        let end = at.min(until).max(begin + 1);
        self.slices.push(Slice { process: process.clone(), lane, name, begin, end });
    }

    fn end_life(&mut self, process: &Name, at: u64) {
        let open: Vec<Key> =
            self.open.keys().filter(|(of, _)| of == process).map(|(_, key)| key.clone()).collect();
        open.iter().for_each(|key| self.close(process, key, at));
        self.rates.remove(process);
    }
}
