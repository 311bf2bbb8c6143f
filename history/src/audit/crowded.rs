//! `crowded`: more acquires waited for a key at once than its queue may hold.
//!
//! The limit is the one that the requests name (`lease_bounded`); if they differ, the largest. A request
//! waits from its `lease_queued` on, and leaves the queue as for `unfair`: when it is served, gives up, or
//! its entry on the server is gone. A queue that a server may have lost, since it died or another one was
//! promoted, begins anew.
//!
//! Only with the events of the lock servers: without them nobody knows when a waiter was served whose answer
//! is still in flight.
//!
//! Source: the bounded buffer of Dijkstra, "Cooperating sequential processes" (1968): no more are in it than
//! it has places.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::Event;
use crate::vocabulary::{Kind, Name};

pub(super) struct Crowded<'h> {
    servers: Vec<Name>,
    queues: BTreeMap<&'h Name, Queue<'h>>,
}

#[derive(Default)]
struct Queue<'h> {
    /// The most that may wait at once; `None` without a limit.
    max: Option<u64>,
    /// The processes of the waiting requests, by owner.
    waiting: BTreeMap<&'h Name, &'h Name>,
    /// The places that the server has served or removed, by owner: a waiter may report one late.
    over: BTreeMap<&'h Name, BTreeSet<u64>>,
}

impl<'h> Judge<'h> for Crowded<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        let servers = rules.servers.clone();
        (!servers.is_empty()).then(|| Self { servers, queues: BTreeMap::new() })
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        match &event.kind {
            Kind::LeaseBounded { key, waiters_max, .. } => {
                let queue = self.queues.entry(key).or_default();
                queue.max = queue.max.max(Some(*waiters_max));
            }
            Kind::LeaseQueued { key, owner, position, .. } => {
                let Some(queue) = self.queues.get_mut(key) else { return };
                let Some(max) = queue.join(owner, *position, process) else { return };
                let waiting = queue.waiting.len();
                let detail = format!(
                    "{process} (place {position}) waited for the lock at {}, and with it {waiting} acquires did, \
                     where {max} may",
                    event.at,
                );
                let others = queue.waiting.iter().filter(|(other, _)| **other != owner);
                let other = others.map(|(_, other)| *other).next().unwrap_or(process);
                verdicts.convict(VerdictKind::Crowded, event.at, key, &[process, other], detail);
            }
            Kind::KeyGranted { key, owner, token, .. } => self.leave(key, owner, *token),
            Kind::WaiterGone { key, owner, position } => self.leave(key, owner, *position),
            Kind::LeaseAcquired { key, owner, .. }
            | Kind::LeaseNotAcquired { key, owner, .. }
            | Kind::KeyDeleted { key, owner, .. }
            | Kind::KeyExpired { key, owner: Some(owner) } => self.leave(key, owner, None),
            Kind::ServerPromoted { .. } => self.begin_anew(),
            Kind::ProcessCrashed { .. } | Kind::ServerStopped { .. } if self.servers.contains(process) => {
                self.begin_anew();
            }
            Kind::ProcessCrashed { .. } => {
                let queues = self.queues.values_mut();
                queues.for_each(|queue| queue.waiting.retain(|_, waiter| *waiter != process));
            }
            _ => {}
        }
    }
}

impl<'h> Crowded<'h> {
    /// Removes a request; the server will not serve it at `place` any more.
    fn leave(&mut self, key: &'h Name, owner: &'h Name, place: Option<u64>) {
        let Some(queue) = self.queues.get_mut(key) else { return };
        queue.waiting.remove(owner);
        queue.over.entry(owner).or_default().extend(place);
    }

    fn begin_anew(&mut self) {
        self.queues.values_mut().for_each(|queue| queue.waiting.clear());
    }
}

impl<'h> Queue<'h> {
    /// Adds a request; returns the limit if more wait then.
    fn join(&mut self, owner: &'h Name, place: u64, process: &'h Name) -> Option<u64> {
        let is_over = self.over.get(owner).is_some_and(|over| over.contains(&place));
        if is_over || self.waiting.insert(owner, process).is_some() {
            return None;
        }
        self.max.filter(|max| self.waiting.len() as u64 > *max)
    }
}
