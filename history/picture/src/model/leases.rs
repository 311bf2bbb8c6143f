//! Bars of leases: keys on servers, trust of holders, critical sections, and waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use history::story::holder;
use history::{Beliefs, Event, Kind, Name, Nanos};

use super::bars::{Bars, Id, Look};
use super::cast::Cast;
use super::{Edge, SpanKind};
use crate::run::Role;

pub(super) struct Leases<'h, 'c> {
    cast: &'c Cast<'c>,
    beliefs: Beliefs<'h>,
    trusted: BTreeMap<Trusting, Trust>,
    /// The servers that store a key for an owner, by key and owner.
    stored: BTreeMap<(Name, Name), BTreeSet<usize>>,
    /// The number of servers that make a lease.
    quorum: usize,
}

/// A holder: its process, its owner token and its key.
type Trusting = (Name, Name, Name);

/// A lease that a holder trusts.
struct Trust {
    lane: usize,
    from: Edge,
    until: Nanos,
    margin: Duration,
    ttl: Duration,
    look: Look,
}

impl<'h, 'c> Leases<'h, 'c> {
    pub(super) fn new(cast: &'c Cast<'c>, events: &[Event]) -> Self {
        // The servers of Redlock grant without tokens, and only a majority of them makes a lease.
        let is_redlock =
            events.iter().any(|event| matches!(event.kind, Kind::KeyGranted { token: None, .. }));
        let servers = cast.lanes.iter().filter(|lane| lane.role == Role::Server).count();
        let quorum = if is_redlock { servers / 2 + 1 } else { 1 };
        let (trusted, stored) = (BTreeMap::new(), BTreeMap::new());
        Self { cast, beliefs: Beliefs::default(), trusted, stored, quorum }
    }

    pub(super) fn observe(&mut self, event: &'h Event, lane: usize, edge: Edge, bars: &mut Bars) {
        self.trust(event, lane, edge, bars);
        let hue = self.cast.lanes[lane].hue;
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } | Kind::LeaseRetried { key, owner, .. } => {
                let look = Look { hue, label: "waits".to_owned(), key: self.cast.key(key) };
                bars.open(Id::new(lane, SpanKind::Wait, owner.as_str()), edge, look);
            }
            Kind::LeaseQueued { owner, position, .. } => {
                let label = format!("waits, queued at {position}");
                bars.relabel(&Id::new(lane, SpanKind::Wait, owner.as_str()), label);
            }
            Kind::LeaseAcquired { owner, .. } | Kind::LeaseNotAcquired { owner, .. } => {
                bars.close(&Id::new(lane, SpanKind::Wait, owner.as_str()), edge);
            }
            Kind::SectionEntered { key, owner, token } => {
                let label = format!("in the critical section, token {token}");
                let look = Look { hue, label, key: self.cast.key(key) };
                bars.open(Id::new(lane, SpanKind::Section, owner.as_str()), edge, look);
            }
            Kind::SectionLeft { owner, .. } => {
                bars.close(&Id::new(lane, SpanKind::Section, owner.as_str()), edge);
            }
            Kind::KeyGranted { key, owner, .. } => {
                self.removed(key, lane, edge, bars);
                self.stores(key, owner, lane, edge, bars);
            }
            Kind::KeyExtended { key, owner, .. } => self.stores(key, owner, lane, edge, bars),
            Kind::KeyDeleted { key, .. } | Kind::KeyExpired { key, .. } => {
                self.removed(key, lane, edge, bars);
            }
            Kind::ProcessCrashed { .. } => self.crashed(lane, edge, bars),
            _ => {}
        }
    }

    /// Closes the bars of leases that are still trusted.
    pub(super) fn finish(self, end: Nanos, bars: &mut Bars) {
        for trust in self.trusted.into_values() {
            trust.expire(end, bars);
        }
    }

    /// Notes that the server in `lane` stores `key` for `owner`.
    fn stores(&mut self, key: &Name, owner: &Name, lane: usize, edge: Edge, bars: &mut Bars) {
        let (name, number) = (holder(Some(owner)), self.cast.key(key));
        let client = self.cast.lane(name);
        let hue = client.and_then(|client| self.cast.lanes[client].hue);
        let look = Look { hue, label: format!("stored for {name}"), key: number };
        bars.open(Id::new(lane, SpanKind::Stored, key.as_str()), edge, look);
        let servers = self.stored.entry((key.clone(), owner.clone())).or_default();
        servers.insert(lane);
        if let Some(client) = client.filter(|_| servers.len() >= self.quorum) {
            let of =
                if self.quorum > 1 { "stored by a majority of the servers" } else { "stored by the server" };
            let look = Look { hue, label: format!("lease of {name}, {of}"), key: number };
            bars.open(Id::new(client, SpanKind::Lease, owner.as_str()), edge, look);
        }
    }

    /// Notes that the server in `lane` does not store `key` any more.
    fn removed(&mut self, key: &Name, lane: usize, edge: Edge, bars: &mut Bars) {
        bars.close(&Id::new(lane, SpanKind::Stored, key.as_str()), edge);
        for ((of, owner), servers) in &mut self.stored {
            if of == key && servers.remove(&lane) && servers.len() + 1 == self.quorum {
                let Some(client) = self.cast.lane(holder(Some(owner))) else { continue };
                bars.close(&Id::new(client, SpanKind::Lease, owner.as_str()), edge);
            }
        }
    }

    /// Closes the bars that the death of a process ends. A server's stored keys may survive on its disk: an
    /// event after its restart then shows them.
    fn crashed(&mut self, lane: usize, edge: Edge, bars: &mut Bars) {
        use SpanKind::{Section, Wait};
        bars.close_all(edge, |id| id.lane == lane && [Section, Wait].contains(&id.kind));
        let keys: BTreeSet<Name> = self.stored.keys().map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.removed(&key, lane, edge, bars);
        }
    }

    /// Follows the leases that holders trust.
    fn trust(&mut self, event: &'h Event, lane: usize, edge: Edge, bars: &mut Bars) {
        if let Some((key, belief)) = self.beliefs.observe(event) {
            let id = (event.process.clone(), belief.by.owner.clone(), key.clone());
            let (ttl, valid) = lengths(&event.kind);
            let renewed = self.trusted.get(&id).filter(|trust| trust.until >= event.at);
            let (from, ttl) = renewed.map_or((edge, ttl), |trust| (trust.from, ttl.or(Some(trust.ttl))));
            if renewed.is_none()
                && let Some(over) = self.trusted.remove(&id)
            {
                over.expire(event.at, bars);
            }
            let ttl = ttl.unwrap_or(valid);
            let margin = self.beliefs.true_time(&event.process, ttl.saturating_sub(valid));
            let look = Look {
                hue: self.cast.lanes[lane].hue,
                label: format!("{} trusts its lease, token {}", event.process, belief.token),
                key: self.cast.key(key),
            };
            self.trusted.insert(id, Trust { lane, from, until: belief.until, margin, ttl, look });
        }
        let mut ended: BTreeSet<Trusting> = self.trusted.keys().cloned().collect();
        for (key, belief) in self.beliefs.all() {
            let id = (belief.by.process.clone(), belief.by.owner.clone(), key.clone());
            ended.remove(&id);
            if let Some(trust) = self.trusted.get_mut(&id) {
                trust.until = belief.until;
            }
        }
        for id in ended {
            if let Some(trust) = self.trusted.remove(&id) {
                trust.end(edge, bars);
            }
        }
    }
}

/// Returns the TTL and the validity that an event gives a lease.
fn lengths(kind: &Kind) -> (Option<Duration>, Duration) {
    match kind {
        Kind::LeaseAcquired { ttl_millis, valid_micros, .. } => {
            let valid = Duration::from_micros(valid_micros.unwrap_or(0));
            (ttl_millis.map(Duration::from_millis), valid)
        }
        Kind::LeaseTtlChanged { ttl_millis, valid_micros, .. } => {
            (ttl_millis.map(Duration::from_millis), Duration::from_micros(valid_micros.unwrap_or(0)))
        }
        Kind::LeaseRenewed { valid_micros, .. } => (None, Duration::from_micros(valid_micros.unwrap_or(0))),
        _ => (None, Duration::ZERO),
    }
}

impl Trust {
    /// Draws the lease as ended by an event.
    fn end(self, edge: Edge, bars: &mut Bars) {
        if self.until <= edge.at {
            self.expire(edge.at, bars);
        } else {
            bars.add(&Id::new(self.lane, SpanKind::Belief, ""), self.from, edge, self.look);
        }
    }

    /// Draws the lease as ended by time alone, and its margin until `last` at most.
    fn expire(self, last: Nanos, bars: &mut Bars) {
        let until = Edge { at: self.until.min(last.max(self.from.at)), mark: None };
        let over = Edge { at: self.until.after(self.margin).min(last), mark: None };
        bars.add(&Id::new(self.lane, SpanKind::Belief, ""), self.from, until, self.look.clone());
        if over.at > until.at {
            let label = "margin: no longer trusted, still stored".to_owned();
            bars.add(&Id::new(self.lane, SpanKind::Margin, ""), until, over, Look { label, ..self.look });
        }
    }
}
