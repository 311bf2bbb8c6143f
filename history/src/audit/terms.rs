//! `term_regressed`: an observer of an election was shown a term that is not above all terms that it had been
//! shown before.
//!
//! Each observer is judged by itself: two may learn of a term at different times. An observer that crashes
//! begins anew, since it has forgotten what it saw.
//!
//! Source: monotonic reads of Terry et al., "Session guarantees for weakly consistent replicated data"
//! (1994).

use std::collections::BTreeMap;

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::text::holder;
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Terms<'h> {
    /// The highest term that each observer has seen, by observer and key.
    highest: BTreeMap<(&'h Name, &'h Name), Seen<'h>>,
}

#[derive(Clone, Copy)]
struct Seen<'h> {
    term: u64,
    leader: Option<&'h Name>,
    at: Nanos,
}

impl<'h> Judge<'h> for Terms<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        let observer = &event.process;
        match &event.kind {
            Kind::TermObserved { key, owner, token } => {
                let seen = Seen { term: *token, leader: owner.as_ref(), at: event.at };
                match self.highest.get(&(observer, key)).filter(|highest| highest.term >= *token) {
                    Some(highest) => judge(observer, key, *highest, seen, verdicts),
                    None => drop(self.highest.insert((observer, key), seen)),
                }
            }
            Kind::ProcessCrashed { .. } => self.highest.retain(|(of, _), _| *of != observer),
            _ => {}
        }
    }
}

fn judge(observer: &Name, key: &Name, highest: Seen<'_>, seen: Seen<'_>, verdicts: &mut Verdicts) {
    let detail = format!(
        "{observer} was shown {} as the leader of term {} at {}, after {} of term {} at {}",
        holder(seen.leader),
        seen.term,
        seen.at,
        holder(highest.leader),
        highest.term,
        highest.at,
    );
    verdicts.convict(VerdictKind::TermRegressed, seen.at, key, &[observer], detail);
}
