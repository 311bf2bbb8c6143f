//! `foreign_release`: a client deleted or extended a lock that the server had granted to another client.
//!
//! Judged by the lock servers' own events: `key_deleted` and `key_extended` name the owner that the key held
//! and the client that acted, `key_granted` the client that the owner belongs to. A client may delete its own
//! grants at any time. A lock server is no client: keys that it drops by itself (an eviction) or by order of
//! its primary are not judged. Without server events (live runs), or without the grant of an owner, nothing
//! is judged: the absence of verdicts proves nothing then.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// The target of lock servers' events.
const SERVER: &str = "server";

#[derive(Default)]
pub(super) struct Ownership<'h> {
    /// The grants of each key and owner: the latest of each server.
    granted: BTreeMap<(&'h Name, &'h Name), Vec<Grant<'h>>>,
    /// The processes that have emitted events as servers.
    servers: BTreeSet<&'h Name>,
}

struct Grant<'h> {
    server: &'h Name,
    client: &'h Name,
}

impl<'h> Judge<'h> for Ownership<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        if event.kind.name().target() == SERVER {
            self.servers.insert(&event.process);
        }
        match &event.kind {
            Kind::KeyGranted { key, owner, client, .. } => {
                let grants = self.granted.entry((key, owner)).or_default();
                grants.retain(|grant| *grant.server != event.process);
                grants.push(Grant { server: &event.process, client });
            }
            Kind::KeyDeleted { key, owner, client } => {
                self.judge(event, (key, owner, client), "deleted", verdicts);
            }
            Kind::KeyExtended { key, owner, client, .. } => {
                self.judge(event, (key, owner, client), "extended", verdicts);
            }
            _ => {}
        }
    }
}

impl<'h> Ownership<'h> {
    fn judge(
        &self,
        event: &Event,
        (key, owner, client): (&Name, &Name, &Name),
        act: &str,
        verdicts: &mut Verdicts,
    ) {
        let Some(holder) = self.client_of(key, owner, &event.process) else { return };
        if holder == client || self.servers.contains(client) {
            return;
        }
        let detail = format!(
            "{client} {act} the lock on {} at {}, which belonged to {holder} (owner {owner})",
            event.process, event.at,
        );
        verdicts.convict(VerdictKind::ForeignRelease, event.at, key, &[client, holder], detail);
    }

    /// Returns the client that `server` granted the key to as `owner`; a promoted replica knows it from
    /// another server.
    fn client_of(&self, key: &Name, owner: &Name, server: &Name) -> Option<&'h Name> {
        let grants = self.granted.get(&(key, owner))?;
        let grant = grants.iter().find(|grant| grant.server == server).or(grants.last())?;
        Some(grant.client)
    }
}
