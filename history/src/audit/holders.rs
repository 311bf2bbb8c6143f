//! The holders of grants: joins the resource's view of a writer (an owner, a token) to a process.

use std::collections::BTreeMap;

use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// The acquisitions seen so far.
#[derive(Default)]
pub(super) struct Holders<'h> {
    /// By owner and key. Owners differ in their first bytes, which keeps comparisons short.
    by_owner: BTreeMap<(&'h Name, &'h Name), Holder<'h>>,
    /// The processes by token, for writers that send a token and no owner.
    by_token: BTreeMap<(&'h Name, u64), &'h Name>,
}

struct Holder<'h> {
    process: &'h Name,
    token: Option<u64>,
}

impl<'h> Holders<'h> {
    pub(super) fn observe(&mut self, event: &'h Event) {
        let process = &event.process;
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } | Kind::LeaseRetried { key, owner, .. } => {
                self.by_owner.insert((owner, key), Holder { process, token: None });
            }
            Kind::LeaseAcquired { key, owner, token, .. } | Kind::SectionEntered { key, owner, token } => {
                let has_token = *token != 0;
                self.by_owner.insert((owner, key), Holder { process, token: has_token.then_some(*token) });
                if has_token {
                    self.by_token.insert((key, *token), process);
                }
            }
            _ => {}
        }
    }

    /// Returns the token that `owner` was granted for `key`, if the history has that grant.
    pub(super) fn token(&self, key: &'h Name, owner: &'h Name) -> Option<u64> {
        self.by_owner.get(&(owner, key)).and_then(|holder| holder.token)
    }

    /// Returns the process behind a write or a read: the one that acquired as `owner`, or got `token` if the
    /// owner was not sent. For an owner that is not in the history, its own prefix is used: `a` for
    /// `a:7f3c9e12`. Returns `?` if nothing is known.
    pub(super) fn process(&self, key: &'h Name, owner: Option<&'h Name>, token: u64) -> Name {
        let known = match owner {
            Some(owner) => self.by_owner.get(&(owner, key)).map(|holder| holder.process),
            None => self.by_token.get(&(key, token)).copied(),
        };
        match (known, owner) {
            (Some(process), _) => process.clone(),
            (None, Some(owner)) => instance(owner),
            (None, None) => Name::from("?"),
        }
    }
}

/// Returns the process's name in front of an owner prefix, or the whole prefix if it has no name.
fn instance(owner: &Name) -> Name {
    owner.as_str().rsplit_once(':').map_or_else(|| owner.clone(), |(process, _)| Name::from(process))
}
