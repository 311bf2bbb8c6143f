//! `unheld`: a client's lease was valid by its own clock while no server held its key, or, of several servers
//! that vote, no majority.
//!
//! It shows a wrong belief even without a second client. Judged whenever a belief begins or a server drops a
//! key ([`Beliefs`], [`Stored`]), once for each acquisition. A history without server events is not judged.
//!
//! Source: as for `two_valid`; a lease is a contract of both sides, and the server's side must outlast the
//! holder's.

use std::collections::BTreeSet;

use super::Rules;
use super::beliefs::{Acquisition, Beliefs};
use super::judge::{Judge, State};
use super::stored::Stored;
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Unheld<'h> {
    convicted: BTreeSet<(&'h Name, Acquisition<'h>)>,
}

impl<'h> Judge<'h> for Unheld<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        (rules.exact && !rules.servers.is_empty()).then(Self::default)
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let (Some(beliefs), Some(stored)) = (&state.beliefs, &state.stored) else { return };
        let began = state.began.map(|(key, _)| key);
        let changed = match &event.kind {
            Kind::KeyGranted { key, .. } | Kind::KeyDeleted { key, .. } | Kind::KeyExpired { key, .. } => {
                Some(key)
            }
            Kind::ServerPromoted { .. } => {
                return beliefs
                    .keys()
                    .for_each(|key| self.judge_key(event.at, key, beliefs, stored, verdicts));
            }
            _ => began,
        };
        if let Some(key) = changed {
            self.judge_key(event.at, key, beliefs, stored, verdicts);
        }
    }
}

impl<'h> Unheld<'h> {
    fn judge_key(
        &mut self,
        at: Nanos,
        key: &'h Name,
        beliefs: &Beliefs<'h>,
        stored: &Stored<'h>,
        verdicts: &mut Verdicts,
    ) {
        for belief in beliefs.valid(key, at).filter(|belief| !stored.holds(key, belief.by.owner)) {
            if self.convicted.insert((key, belief.by)) {
                let detail = format!(
                    "the lease of {} (token {}) was valid by its own clock until {}, and from {at} on the \
                     lock was not stored for it",
                    belief.by.process, belief.token, belief.until,
                );
                verdicts.convict(VerdictKind::Unheld, at, key, &[belief.by.process], detail);
            }
        }
    }
}
