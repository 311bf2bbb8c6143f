//! A check for locks whose mistakes a fence hides: a lease has the token of its own grant.
//!
//! With fencing on, the resource refuses the writes of a client that trusts a lease under a wrong token, so
//! that no verdict on writes shows the mistake. The history shows it: the server granted the lock under a
//! token other than the client's.

use std::collections::BTreeMap;

use history::{Effect, Event, Kind, Name};

use crate::sim::check::{Check, Evidence};

/// Returns true if the fault keeps requests in flight: a request that was sent before a grant may be carried
/// out after it.
const fn delays_requests(effect: &Effect) -> bool {
    matches!(effect, Effect::Pause | Effect::Link { .. }) && !effect.is_instant()
}

/// Returns the check that each lease has the token of its own grant. It fails if
///
/// - a client acquires a lease under a token that the server granted to another owner after it had granted
///   the lease to this one, or
/// - a client's lease is renewed under its token although the server has granted the lock to another owner
///   since, and then again to this one.
///
/// No fault excuses either: even if a server forgets, the client learns of a new grant with its answer.
/// Neither is judged if several servers grant a lock, nor is a renewal if a fault kept requests in flight: a
/// request from before the grant may then be granted late.
pub fn own_token() -> impl Check {
    |evidence: &Evidence<'_>| {
        let mut history = Grants::default();
        evidence.events.iter().find_map(|event| history.observe(event, evidence)).map_or(Ok(()), Err)
    }
}

struct Grant<'e> {
    server: &'e Name,
    owner: &'e Name,
    token: u64,
}

#[derive(Default)]
struct Grants<'e> {
    /// By lock, in order of time.
    by_key: BTreeMap<&'e Name, Vec<Grant<'e>>>,
    /// True once a fault may have kept requests in flight.
    is_late: bool,
}

impl<'e> Grants<'e> {
    /// Returns the problem with the event, if the check does not hold.
    fn observe(&mut self, event: &'e Event, evidence: &Evidence<'_>) -> Option<String> {
        match &event.kind {
            Kind::FaultApplied { effect, .. } => self.is_late |= delays_requests(effect),
            Kind::KeyGranted { key, owner, token: Some(token), .. } => {
                let grant = Grant { server: &event.process, owner, token: *token };
                self.by_key.entry(key).or_default().push(grant);
            }
            Kind::LeaseAcquired { key, owner, token, .. } => {
                let other = self.taken_from_another(key, owner, *token)?;
                return Some(format!(
                    "at {} {} acquired {} under the token {token} of another owner ({other})",
                    event.at,
                    event.process,
                    evidence.names.key(key)
                ));
            }
            Kind::LeaseRenewed { key, owner, token, .. } if !self.is_late => {
                let latest = self.granted_again(key, owner, *token)?;
                return Some(format!(
                    "at {} {} renewed {} under its token {token}, but another owner had held it since, and \
                     it was granted again as {latest}",
                    event.at,
                    event.process,
                    evidence.names.key(key)
                ));
            }
            _ => {}
        }
        None
    }

    /// Returns the grants of the lock, if one server alone makes them.
    fn of(&self, key: &Name) -> Option<&[Grant<'e>]> {
        let grants = self.by_key.get(key)?;
        let is_one_server = grants.windows(2).all(|pair| pair[0].server == pair[1].server);
        is_one_server.then_some(grants)
    }

    /// Returns the other owner that was granted `token` after the last grant to `owner`.
    fn taken_from_another(&self, key: &Name, owner: &Name, token: u64) -> Option<&'e Name> {
        let grants = self.of(key)?;
        let own = grants.iter().rposition(|grant| grant.owner == owner)?;
        if grants[own].token == token {
            // A server that forgot its counter has given both owners the same token.
            return None;
        }
        grants[own..]
            .iter()
            .find(|grant| grant.owner != owner && grant.token == token)
            .map(|grant| grant.owner)
    }

    /// Returns the token of the last grant to `owner`, if another owner was granted the lock between the
    /// grant of `token` and the last one.
    fn granted_again(&self, key: &Name, owner: &Name, token: u64) -> Option<u64> {
        let grants = self.of(key)?;
        let first = grants.iter().rposition(|grant| grant.owner == owner && grant.token == token)?;
        let last = grants.iter().rposition(|grant| grant.owner == owner)?;
        let others = grants.get(first..last)?.iter().any(|grant| grant.owner != owner);
        (others && grants[last].token != token).then_some(grants[last].token)
    }
}
