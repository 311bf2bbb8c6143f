//! The keys that lock servers have stored: the owner of each key on each server, or the owners, if its
//! capacity is not that of a mutex.
//!
//! Derived from `key_granted`, `key_extended`, `key_deleted` and `key_expired` of the servers that count
//! ([`Rules::servers`](super::Rules::servers)). A promoted server counts beside the live ones: clients may
//! still be connected to the old primary. It may hold keys without an event in the history, since it may not
//! have received a release: no key counts as free until an event of the promoted server names it, or a TTL
//! has passed by its clock; of a key with several owners an event names only one, so that the TTL must pass.
//! A key that the server itself deletes (`key_deleted` with the server as client) was evicted: a lock may
//! decide by another record that stayed, so it counts as free only once its owner has released it, or a TTL
//! after the owner has lost it. A server that dies may have its keys on a disk, so they stay until an event
//! of that server changes them, but they are no evidence for a verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Capacity, Rules, faults};
use crate::events::{Event, Nanos};
use crate::vocabulary::{ClockFault, Effect, Kind, Name};

pub(super) struct Stored<'h> {
    voters: Vec<Name>,
    quorum: usize,
    down: BTreeSet<&'h Name>,
    /// The entries, by key and server.
    by_key: BTreeMap<&'h Name, BTreeMap<&'h Name, Vec<Held<'h>>>>,
    capacities: BTreeMap<Name, Capacity>,
    /// By key and owner: the owners that had a permit when this one got its own.
    beside: BTreeMap<(&'h Name, &'h Name), BTreeSet<&'h Name>>,
    /// The time since which each key that was stored once is stored nowhere, or has a permit left.
    free: BTreeMap<&'h Name, Nanos>,
    /// The longest time to live with which each key was stored.
    ttls: BTreeMap<&'h Name, Duration>,
    /// The keys that a promoted server may hold, or that were evicted: of several owners, each for itself.
    ghosts: BTreeMap<&'h Name, Vec<Ghost<'h>>>,
    /// The servers whose clocks have been stepped or run at another rate.
    untrue: BTreeSet<&'h Name>,
}

/// A key that a server may hold, and until when; `None` if its clock is not reliable.
#[derive(Clone, Copy)]
struct Ghost<'h> {
    server: &'h Name,
    /// The owner of a key that was evicted.
    owner: Option<&'h Name>,
    until: Option<Nanos>,
}

/// The owner of a key, and whether the server has lived since the event that shows it.
#[derive(Clone, Copy)]
struct Held<'h> {
    owner: &'h Name,
    since: Nanos,
    is_certain: bool,
}

/// A key on one server, and its owner.
pub(super) struct Entry<'h> {
    pub(super) key: &'h Name,
    pub(super) server: &'h Name,
    pub(super) owner: &'h Name,
    /// The time at which the server last stored or extended it.
    pub(super) since: Nanos,
}

impl<'h> Stored<'h> {
    /// Creates the state; `None` without servers, since nothing is known then.
    pub(super) fn of(rules: &Rules) -> Option<Self> {
        let (voters, quorum) = (rules.servers.clone(), rules.servers.len() / 2 + 1);
        (!rules.servers.is_empty()).then(|| Self {
            voters,
            quorum,
            down: BTreeSet::new(),
            by_key: BTreeMap::new(),
            capacities: rules.capacities.clone(),
            beside: BTreeMap::new(),
            free: BTreeMap::new(),
            ttls: BTreeMap::new(),
            ghosts: BTreeMap::new(),
            untrue: BTreeSet::new(),
        })
    }

    /// Returns the entry that `event` removes, if it is certain; it may be replaced at the same time.
    pub(super) fn observe(&mut self, event: &'h Event) -> Option<Entry<'h>> {
        let server = &event.process;
        match &event.kind {
            Kind::ServerPromoted { .. } => {
                let down = &self.down;
                self.voters.retain(|voter| !down.contains(voter));
                self.voters.push(server.clone());
                self.quorum = 1;
                self.may_hold_all(server, event.at);
                None
            }
            Kind::ClockRate { .. } => {
                self.untrue.insert(server);
                None
            }
            Kind::FaultApplied { effect: Effect::Clock(ClockFault::StepNanos(_)), .. } => {
                self.untrue.insert(server);
                None
            }
            Kind::ProcessCrashed { .. } => {
                self.down.insert(server);
                let held = self.by_key.values_mut().filter_map(|servers| servers.get_mut(server)).flatten();
                held.for_each(|held| held.is_certain = false);
                None
            }
            kind if faults::is_restart(kind) => {
                self.down.remove(server);
                None
            }
            Kind::KeyGranted { key, owner, ttl_millis, .. } => {
                self.resolve_ghost(server, key);
                let ttl = ttl_millis.map_or(Duration::MAX, Duration::from_millis);
                let longest = self.ttls.entry(key).or_default();
                *longest = ttl.max(*longest);
                let (_, former) = self.store(key, server, Held { owner, since: event.at, is_certain: true });
                self.note_beside(key, server, owner);
                former.and_then(|held| held.entry(key, server))
            }
            Kind::KeyExtended { key, owner, .. } => {
                self.resolve_ghost(server, key);
                let (own, _) = self.store(key, server, Held { owner, since: event.at, is_certain: true });
                // An extension stores nothing anew: a key that is renewed for ever is a leak, too.
                let since = own.filter(|own| own.is_certain).map(|own| own.since);
                let stored = self.by_key.entry(key).or_default().entry(server).or_default().last_mut();
                if let Some((stored, since)) = stored.zip(since) {
                    stored.since = since;
                }
                None
            }
            Kind::LeaseReleased { key, owner, .. } | Kind::LeaseLost { key, owner, .. } => {
                self.end_evicted(key, owner, event);
                None
            }
            Kind::KeyDeleted { key, owner, client } if client == server => {
                let is_alone = self.capacity(key) == Capacity::Mutex;
                let ghosts = self.ghosts.entry(key).or_default();
                ghosts.retain(|ghost| !is_alone && ghost.owner != Some(owner));
                ghosts.push(Ghost { server, owner: Some(owner), until: None });
                self.remove(key, server, Some(owner))?.entry(key, server)
            }
            Kind::KeyDeleted { key, owner, .. } => self.drop_key(event, key, Some(owner)),
            Kind::KeyExpired { key, owner } => self.drop_key(event, key, owner.as_ref()),
            _ => None,
        }
    }

    /// Stores a grant. Returns what was stored for the same owner, and what was stored for another one that
    /// this replaces.
    fn store(
        &mut self,
        key: &'h Name,
        server: &'h Name,
        new: Held<'h>,
    ) -> (Option<Held<'h>>, Option<Held<'h>>) {
        let is_alone = self.capacity(key) == Capacity::Mutex;
        let held = self.by_key.entry(key).or_default().entry(server).or_default();
        let own = held.iter().position(|held| held.owner == new.owner).map(|place| held.remove(place));
        let other = if is_alone { held.pop() } else { None };
        held.push(new);
        if is_alone || self.is_full(key) {
            self.free.remove(key);
        }
        (own, other)
    }

    /// Notes the owners that have a permit besides `owner`, who has just got one.
    fn note_beside(&mut self, key: &'h Name, server: &'h Name, owner: &'h Name) {
        if matches!(self.capacity(key), Capacity::Permits(_)) {
            let held = self.by_key.get(key).and_then(|servers| servers.get(server));
            let owners = held.into_iter().flatten().map(|held| held.owner).collect();
            self.beside.insert((key, owner), owners);
        }
    }

    /// Returns true if `other` may have had its permit when `owner` got its own.
    pub(super) fn may_be_beside(&self, key: &Name, owner: &Name, other: &Name) -> bool {
        self.beside.get(&(key, owner)).is_none_or(|owners| owners.contains(other))
    }

    /// Removes a grant: that of `owner`, or that of any owner from a mutex, which has one.
    fn remove(&mut self, key: &'h Name, server: &'h Name, owner: Option<&Name>) -> Option<Held<'h>> {
        let is_alone = self.capacity(key) == Capacity::Mutex;
        let held = self.by_key.entry(key).or_default().entry(server).or_default();
        let place = held.iter().position(|held| is_alone || owner == Some(held.owner))?;
        Some(held.remove(place))
    }

    /// Notes that a server dropped the key of `owner`. Returns what was certain.
    fn drop_key(&mut self, event: &'h Event, key: &'h Name, owner: Option<&Name>) -> Option<Entry<'h>> {
        let server = &event.process;
        let was_ghost = self.resolve_ghost(server, key);
        let was_full = self.is_full(key);
        let held = self.remove(key, server, owner);
        if self.counts(server) && !self.is_full(key) && (was_ghost || (was_full && held.is_some())) {
            self.free.insert(key, event.at);
        }
        held?.entry(key, server)
    }

    /// Notes that the promoted `server` may hold every key that was ever stored, for a TTL.
    fn may_hold_all(&mut self, server: &'h Name, at: Nanos) {
        let is_true = !self.untrue.contains(server);
        let ghost = |ttl: Duration| Ghost { server, owner: None, until: is_true.then(|| at.after(ttl)) };
        self.ghosts = self.ttls.iter().map(|(key, ttl)| (*key, vec![ghost(*ttl)])).collect();
    }

    /// Notes that the owner of a key that was evicted has released it or lost it.
    fn end_evicted(&mut self, key: &'h Name, owner: &Name, event: &Event) {
        let is_loss = matches!(event.kind, Kind::LeaseLost { .. });
        let left = if is_loss { self.ttls.get(key).copied().unwrap_or_default() } else { Duration::ZERO };
        let ghosts = self.ghosts.get_mut(key).into_iter().flatten();
        for ghost in ghosts.filter(|ghost| ghost.owner == Some(owner)) {
            ghost.until = Some(event.at.after(left));
        }
    }

    /// Notes that an event of `server` names `key`: the state of a mutex is known from now on. Returns true
    /// if it was unknown before.
    fn resolve_ghost(&mut self, server: &Name, key: &Name) -> bool {
        let of_server = |ghosts: &Vec<Ghost<'_>>| ghosts.iter().any(|ghost| ghost.server == server);
        let is_resolved =
            self.capacity(key) == Capacity::Mutex && self.ghosts.get(key).is_some_and(of_server);
        is_resolved && self.ghosts.remove(key).is_some()
    }

    /// Returns true if enough of the servers hold `key` for `owner`.
    pub(super) fn holds(&self, key: &Name, owner: &Name) -> bool {
        let servers = self.by_key.get(key).into_iter().flatten();
        let for_owner = servers
            .filter(|(server, held)| self.counts(server) && held.iter().any(|held| held.owner == owner));
        for_owner.count() >= self.quorum
    }

    fn capacity(&self, key: &Name) -> Capacity {
        self.capacities.get(key).copied().unwrap_or_default()
    }

    /// Returns true if a server whose events count holds `key`: for anybody, or for as many as have a permit.
    fn is_full(&self, key: &Name) -> bool {
        let full = match self.capacity(key) {
            Capacity::Permits(count) => count,
            Capacity::Mutex | Capacity::ReadersWriter => 1,
        };
        let mut servers = self.by_key.get(key).into_iter().flatten();
        servers.any(|(server, held)| held.len() >= full && self.counts(server))
    }

    /// Returns true if the server's events count.
    pub(super) fn counts(&self, server: &Name) -> bool {
        self.voters.contains(server)
    }

    /// Returns all certain entries of the servers that count.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'h>> {
        let all = self
            .by_key
            .iter()
            .flat_map(|(key, servers)| servers.iter().map(move |(server, held)| (key, server, held)))
            .flat_map(|(key, server, held)| held.iter().filter_map(|held| held.entry(key, server)));
        all.filter(|stored| self.counts(stored.server))
    }

    /// Returns the time since which no server holds `key`, or since which it has a permit left: zero if that
    /// was always so; `None` if it is not so, or may not be.
    pub(super) fn free_since(&self, key: &Name) -> Option<Nanos> {
        if self.is_full(key) {
            return None;
        }
        let free = self.free.get(key).copied().unwrap_or_default();
        let mut ghosts = self.ghosts.get(key).into_iter().flatten();
        ghosts.try_fold(free, |free, ghost| Some(free.max(ghost.until?)))
    }
}

impl<'h> Held<'h> {
    fn entry(self, key: &'h Name, server: &'h Name) -> Option<Entry<'h>> {
        self.is_certain.then_some(Entry { key, server, owner: self.owner, since: self.since })
    }
}
