//! A check for refusals that no order of the tokens explains: of the client that holds the lock, and of a
//! token above all others.

use std::collections::{BTreeMap, BTreeSet};

use history::{Effect, Event, InstantFault, Kind, Name, RoleFault};

use super::seen::{Seen, Unfounded};
use crate::sim::check::{Check, Evidence};

/// Returns the check that the resource refuses no write of the client that holds the lock. It fails if the
/// resource refuses a write because of a higher token or of another owner's equal one, while the lock server
/// still stores the grant under which the write was made. Some client then had a token above its place in the
/// order of the grants, or this client had a token below its place.
///
/// It also fails if the resource refuses a write or a claim of any client whose token is above the one that
/// the resource says it has seen, or above all tokens that it has accepted or had claimed. The latter is not
/// judged once the resource has crashed: a decision that reached its disk may be missing in the history.
///
/// The holder is not judged if several servers grant a lock, nor once a server may have lost its counter: it
/// crashed, keys were evicted, a replica was promoted, or it granted a token that is not above all earlier
/// ones. The verdict `token_regressed` is about that. Of a semaphore, the holders of all permits are judged,
/// except for a write that was accepted before: a retry of it is refused once another permit has written.
pub fn holder_accepted() -> impl Check {
    |evidence: &Evidence<'_>| {
        let mut history = History::default();
        evidence.events.iter().find_map(|event| history.observe(event, evidence)).map_or(Ok(()), Err)
    }
}

/// Returns true if a server loses keys and its counter by the fault.
const fn loses_keys(effect: &Effect) -> bool {
    matches!(effect, Effect::Instant(InstantFault::Erase) | Effect::Role(RoleFault::Promote))
}

/// Returns true if the outcome is the refusal of a write because another owner has used its token.
fn is_of_another(outcome: &Name) -> bool {
    outcome.as_str() == "owner"
}

#[derive(Default)]
struct History<'e> {
    locks: BTreeMap<&'e Name, Granted<'e>>,
    /// The locks with several permits.
    semaphores: BTreeSet<&'e Name>,
    /// The writes to their resources that were accepted: the key, the owner, the token and the number.
    accepted: BTreeSet<(&'e Name, &'e Name, u64, Option<u64>)>,
    crashed: BTreeSet<&'e Name>,
    seen: Seen<'e>,
    /// True once keys may have been lost without a crash.
    is_lossy: bool,
}

/// The grants of one lock, made by its only server.
struct Granted<'e> {
    server: &'e Name,
    /// The owners that hold it, each with the token of its grant, unless the server does not know that: one,
    /// or as many as a semaphore has permits.
    holders: BTreeMap<&'e Name, Option<u64>>,
    highest: u64,
    /// False once several servers have granted it, or a token was not above the earlier ones.
    is_evidence: bool,
}

impl<'e> Granted<'e> {
    fn by(server: &'e Name) -> Self {
        Self { server, holders: BTreeMap::new(), highest: 0, is_evidence: true }
    }

    /// Notes a grant, which ends the others unless the lock has several permits.
    fn grant(&mut self, server: &Name, owner: &'e Name, token: Option<u64>, has_permits: bool) {
        let is_above = token.is_none_or(|token| token > self.highest);
        self.is_evidence &= self.server == server && is_above;
        self.highest = self.highest.max(token.unwrap_or_default());
        if !has_permits {
            self.holders.clear();
        }
        self.holders.insert(owner, token);
    }
}

impl<'e> History<'e> {
    /// Notes the grants and losses of servers, and returns the problem with a refusal.
    fn observe(&mut self, event: &'e Event, evidence: &Evidence<'_>) -> Option<String> {
        let Some(Unfounded { key, token, seen, highest }) = self.seen.observe(event) else {
            return self.observe_holder(event, evidence);
        };
        Some(format!(
            "at {} the token {token} for {} was refused as if it were old: {highest} is the highest that the \
             resource had accepted or had claimed, and it says that it has seen {seen}",
            event.at,
            evidence.names.key(key)
        ))
    }

    fn observe_holder(&mut self, event: &'e Event, evidence: &Evidence<'_>) -> Option<String> {
        let process = &event.process;
        match &event.kind {
            Kind::FaultApplied { effect, .. } => self.is_lossy |= loses_keys(effect),
            Kind::ProcessCrashed { .. } => {
                self.crashed.insert(process);
            }
            Kind::LeasePermits { key, permits, .. } if *permits > 1 => {
                self.semaphores.insert(key);
            }
            Kind::KeyGranted { key, owner, token, .. } => {
                let lock = self.locks.entry(key).or_insert_with(|| Granted::by(process));
                lock.grant(process, owner, *token, self.semaphores.contains(key));
            }
            Kind::KeyDeleted { key, owner, .. } => self.end(key, Some(owner)),
            Kind::KeyExpired { key, owner } => self.end(key, owner.as_ref()),
            Kind::WriteAccepted { key, owner: Some(owner), token, seq, .. }
                if self.semaphores.contains(key) =>
            {
                self.accepted.insert((key, owner, *token, *seq));
            }
            Kind::WriteRejected { key, owner: Some(owner), token, seq, seen, outcome, .. }
                // A late retry of an own write is rightly refused: its own token is the highest.
                if (seen > token || outcome.as_ref().is_some_and(is_of_another))
                    && self.is_held(key, owner, *token)
                    && !self.accepted.contains(&(key, owner, *token, *seq)) =>
            {
                return Some(format!(
                    "at {} a write to {} with the token {token} of its holder was refused, since the \
                     resource had seen {seen}",
                    event.at,
                    evidence.names.key(key)
                ));
            }
            _ => {}
        }
        None
    }

    /// Ends the grant of `owner`, or of all if it is not known, or if there is only one.
    fn end(&mut self, key: &Name, owner: Option<&Name>) {
        let Some(lock) = self.locks.get_mut(key) else { return };
        match owner.filter(|_| self.semaphores.contains(key)) {
            Some(owner) => drop(lock.holders.remove(owner)),
            None => lock.holders.clear(),
        }
    }

    /// Returns true if the grant of `token` to `owner` is still stored.
    fn is_held(&self, key: &Name, owner: &Name, token: u64) -> bool {
        self.locks.get(key).is_some_and(|lock| {
            let is_evidence = lock.is_evidence && !self.is_lossy && !self.crashed.contains(lock.server);
            let is_own = |granted: &Option<u64>| granted.is_none_or(|granted| granted == token);
            is_evidence && lock.holders.get(owner).is_some_and(is_own)
        })
    }
}
