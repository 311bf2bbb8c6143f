//! `lost_update`: an owner read the resource, another owner's write was accepted, and then the reader's write
//! was accepted although the reader had not seen the other one.
//!
//! Judged by the order in which the resource acted. An owner has seen the state of its latest read, and its
//! own writes since. Owners that never read overwrite blindly and knowingly: they lose nothing here
//! (`stale_write` judges them). A write of an unnamed owner counts as a change for the others, and is not
//! judged itself.
//!
//! Permits of a semaphore keep nobody else from writing, so updates under them are not judged.
//!
//! A conditional write (`conditional_accepted`) names the version that its writer has seen. If the history
//! has no read of the writer, that version counts, so that writes of unnamed owners are judged, too.
//!
//! Source: the phenomenon P4 of Berenson et al., "A Critique of ANSI SQL Isolation Levels" (1995).

use std::collections::BTreeMap;
use std::fmt;

use super::Rules;
use super::capacity::{Capacities, Capacity};
use super::holders::Holders;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

pub(super) struct LostUpdate<'h> {
    capacities: Capacities<'h>,
    resources: BTreeMap<&'h Name, Resource<'h>>,
}

#[derive(Default)]
struct Resource<'h> {
    /// The number of accepted writes.
    writes: u64,
    /// The last accepted write.
    last: Option<Write<'h>>,
    readers: BTreeMap<&'h Name, Knowledge>,
}

#[derive(Clone, Copy)]
struct Write<'h> {
    number: u64,
    version: u64,
    at: Nanos,
    owner: Option<&'h Name>,
    guard: Guard,
}

/// The guard of a write.
#[derive(Clone, Copy)]
enum Guard {
    Token(u64),
    /// The version that a conditional write named.
    Version(u64),
}

/// The state of the resource that an owner has read.
#[derive(Clone, Copy)]
struct Knowledge {
    /// It has seen this many of the accepted writes.
    writes: u64,
    read_at: Nanos,
    read_version: u64,
}

impl<'h> Judge<'h> for LostUpdate<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        Some(Self { capacities: Capacities::of(rules), resources: BTreeMap::new() })
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        if event.kind.key().is_some_and(|key| matches!(self.capacities.of_key(key), Capacity::Permits(_))) {
            return;
        }
        let holders = &state.holders;
        let at = event.at;
        let (key, owner, guard, version) = match &event.kind {
            Kind::ResourceRead { key, owner: Some(owner), version, .. } => {
                let resource = self.resources.entry(key).or_default();
                let seen = Knowledge { writes: resource.writes, read_at: at, read_version: *version };
                resource.readers.insert(owner, seen);
                return;
            }
            Kind::WriteAccepted { key, owner, token, version, .. } => {
                (key, owner, Guard::Token(*token), version)
            }
            Kind::ConditionalAccepted { key, owner, expected, version, .. } => {
                (key, owner, Guard::Version(*expected), version)
            }
            _ => return,
        };
        let resource = self.resources.entry(key).or_default();
        let number = resource.writes + 1;
        let write = Write { number, version: *version, at, owner: owner.as_ref(), guard };
        resource.judge(key, write, holders, verdicts);
        resource.keep(write);
    }
}

impl<'h> Resource<'h> {
    fn judge(&self, key: &'h Name, write: Write<'h>, holders: &Holders<'h>, verdicts: &mut Verdicts) {
        let Some((lost, seen)) = self.unseen_by(write) else { return };
        let writer = write.writer(key, holders);
        let victim = lost.writer(key, holders);
        let detail = format!(
            "{writer} ({}) {seen}, {victim} ({}) wrote version {} at {}, and {writer} overwrote it at {} \
             without having seen it",
            write.guard, lost.guard, lost.version, lost.at, write.at,
        );
        verdicts.convict(VerdictKind::LostUpdate, write.at, key, &[&writer, &victim], detail);
    }

    /// Returns the last write, if the writer of this one has not seen it, and a text about the state that it
    /// has seen.
    fn unseen_by(&self, write: Write<'h>) -> Option<(Write<'h>, String)> {
        let last = self.last?;
        match (write.owner.and_then(|owner| self.readers.get(owner)), write.guard) {
            // A write that it has not seen is another owner's: a reader has seen its own.
            (Some(known), _) => (last.number > known.writes)
                .then(|| (last, format!("read version {} at {}", known.read_version, known.read_at))),
            (None, Guard::Version(expected)) => {
                (last.version > expected).then(|| (last, format!("had seen version {expected}")))
            }
            (None, Guard::Token(_)) => None,
        }
    }

    fn keep(&mut self, write: Write<'h>) {
        self.writes = write.number;
        self.last = Some(write);
        if let Some(known) = write.owner.and_then(|owner| self.readers.get_mut(owner)) {
            known.writes = write.number;
        }
    }
}

impl<'h> Write<'h> {
    fn writer(self, key: &'h Name, holders: &Holders<'h>) -> Name {
        // Zero is no token: a conditional writer is identified by its owner alone.
        let token = if let Guard::Token(token) = self.guard { token } else { 0 };
        holders.process(key, self.owner, token)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(token) => write!(f, "token {token}"),
            Self::Version(expected) => write!(f, "if version {expected}"),
        }
    }
}
