//! `unfair`: a lock that promises first come, first served, served a later arrival first.
//!
//! The order of arrival is the one that the lock itself announced: `lease_queued` with its position, lower
//! first. (Not that of `lease_requested`: the senders' events do not show which of two requests reached the
//! lock first.) A request that was never queued is not judged, neither as the one that overtakes nor as the
//! one overtaken.
//!
//! A request is served when it gets the lock (`lease_acquired`), or when a lock server grants it the key
//! after it was queued (`key_granted`), since the answer may be in flight for long. It leaves the queue
//! unserved when it gives up (`lease_not_acquired`), when its process crashes, or when its entry on the
//! server expires or is deleted (`waiter_gone`, and `key_expired` or `key_deleted` of one that the lock had
//! been granted to).
//!
//! Where a lock has N permits, or readers, several waiters may be served at once, and learn it in any order:
//! a service is unfair only if N waiters before it were waiting; that of a reader, if a writer was.
//!
//! A waiter whose session is over by its own clock queues again, and has two places until the server ends the
//! session. If the server serves or removes the first of them, the request still waits at the second.
//!
//! A paused waiter may report its place when the server has served it or removed it long before. Such a place
//! can't be overtaken: the server's last word on a request counts, whenever the waiter reports the place.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::capacity::Capacities;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Unfair<'h> {
    lines: BTreeMap<&'h Name, Line<'h>>,
}

/// A request that was queued.
struct Waiter<'h> {
    position: u64,
    process: &'h Name,
}

#[derive(Default)]
struct Line<'h> {
    /// The waiting requests in the order of service, by position and owner: a faulty lock may give out one
    /// position twice.
    waiting: BTreeMap<(u64, &'h Name), &'h Name>,
    positions: BTreeMap<&'h Name, u64>,
    /// The places that each owner had before it queued again.
    former: BTreeMap<&'h Name, BTreeSet<u64>>,
    /// The last place of each owner that the server has served or removed. The token of a fair lock is the
    /// position in its queue.
    over: BTreeMap<&'h Name, u64>,
}

impl<'h> Judge<'h> for Unfair<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        rules.fifo.then(Self::default)
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        match &event.kind {
            Kind::LeaseQueued { key, owner, position, .. } => {
                self.lines.entry(key).or_default().join(owner, *position, &event.process);
            }
            Kind::LeaseAcquired { key, owner, .. } | Kind::KeyGranted { key, owner, .. } => {
                if let Kind::KeyGranted { token: Some(token), .. } = &event.kind {
                    let line = self.lines.entry(key).or_default();
                    line.over.insert(owner, *token);
                    if line.former.get(owner).is_some_and(|former| former.contains(token)) {
                        return;
                    }
                }
                if let Some(line) = self.lines.get_mut(key)
                    && let Some(served) = line.leave(owner)
                {
                    line.judge(event.at, key, (owner, served), &state.capacities, verdicts);
                }
            }
            Kind::WaiterGone { key, owner, position } => {
                let line = self.lines.entry(key).or_default();
                if !line.is_former(owner, *position) {
                    line.leave(owner);
                }
                line.over.extend(position.map(|position| (owner, position)));
            }
            Kind::LeaseNotAcquired { key, owner, .. } => {
                if let Some(line) = self.lines.get_mut(key) {
                    line.leave(owner);
                }
            }
            Kind::KeyDeleted { key, owner, .. } | Kind::KeyExpired { key, owner: Some(owner) } => {
                // It is the place that was granted last.
                if let Some(line) = self.lines.get_mut(key)
                    && !line.is_former(owner, line.over.get(owner).copied())
                {
                    line.leave(owner);
                }
            }
            Kind::ProcessCrashed { .. } => self.lines.retain(|_, line| {
                line.drop_process(&event.process);
                !line.waiting.is_empty() || !line.over.is_empty()
            }),
            _ => {}
        }
    }
}

impl<'h> Line<'h> {
    fn join(&mut self, owner: &'h Name, position: u64, process: &'h Name) {
        if let Some(left) = self.leave(owner).filter(|left| left.position != position) {
            self.former.entry(owner).or_default().insert(left.position);
        }
        if self.over.get(owner) == Some(&position) {
            // The waiter reports late: the server has served this place, or removed it.
            return;
        }
        self.waiting.insert((position, owner), process);
        self.positions.insert(owner, position);
    }

    /// Returns true if the owner had this place before it queued again, and has another one now.
    fn is_former(&self, owner: &Name, place: Option<u64>) -> bool {
        let former = self.former.get(owner).zip(place);
        former.is_some_and(|(former, place)| former.contains(&place))
            && self.positions.get(owner).copied() != place
    }

    fn leave(&mut self, owner: &'h Name) -> Option<Waiter<'h>> {
        let position = self.positions.remove(owner)?;
        let process = self.waiting.remove(&(position, owner))?;
        Some(Waiter { position, process })
    }

    fn drop_process(&mut self, process: &Name) {
        let positions = &mut self.positions;
        self.waiting.retain(|(_, owner), waiter| {
            let stays = *waiter != process;
            if !stays {
                positions.remove(owner);
            }
            stays
        });
    }

    /// Judges the service of `served`, which has left the queue.
    fn judge(
        &self,
        at: Nanos,
        key: &'h Name,
        (owner, served): (&'h Name, Waiter<'h>),
        capacities: &Capacities<'h>,
        verdicts: &mut Verdicts,
    ) {
        let before = self.waiting.iter().take_while(|((position, _), _)| *position < served.position);
        let before: Vec<_> =
            before.map(|((position, owner), process)| (*owner, (*position, *process))).collect();
        let waiters: Vec<_> = before.iter().collect();
        let new = (owner, (served.position, served.process));
        let overtaken = capacities.crowded(key, &waiters, &new, |(owner, _)| owner);
        let Some((_, (first, waiter))) = overtaken.first().and_then(|overtaken| overtaken.first()) else {
            return;
        };
        let detail = format!(
            "{} (place {} in line) was given the lock at {at}, while {waiter} (place {first}) was waiting",
            served.process, served.position,
        );
        verdicts.convict(VerdictKind::Unfair, at, key, &[served.process, waiter], detail);
    }
}
