//! `lost_update`: an owner read the resource, another one's write was accepted, then the reader's write was, without its
//! having seen the other.
//!
//! Judged by the order in which the resource acted. What an owner knows is what its latest read showed, and what it wrote
//! itself since. Owners that never read overwrite blindly and knowingly: they lose nothing here (`stale_write` judges
//! them). A write of an unnamed owner counts as a change for the others, and is not judged itself.
//!
//! Source: the phenomenon P4 of Berenson et al., "A Critique of ANSI SQL Isolation Levels" (1995).

use std::collections::BTreeMap;

use super::history::{Event, Nanos};
use super::holders::Holders;
use super::name::Name;
use super::verdict::{VerdictKind, Verdicts};
use super::vocabulary::Kind;

#[derive(Default)]
pub(super) struct LostUpdate<'h> {
    resources: BTreeMap<&'h Name, Resource<'h>>,
}

#[derive(Default)]
struct Resource<'h> {
    /// How many writes were accepted.
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
    token: u64,
}

/// What an owner that reads knows of the resource.
#[derive(Clone, Copy)]
struct Knowledge {
    /// It has seen this many of the accepted writes.
    writes: u64,
    read_at: Nanos,
    read_version: u64,
}

impl<'h> LostUpdate<'h> {
    pub(super) fn observe(&mut self, event: &'h Event, holders: &Holders<'h>, verdicts: &mut Verdicts) {
        match &event.kind {
            Kind::ResourceRead { key, owner: Some(owner), version, .. } => {
                let resource = self.resources.entry(key).or_default();
                let seen = Knowledge { writes: resource.writes, read_at: event.at, read_version: *version };
                resource.readers.insert(owner, seen);
            }
            Kind::WriteAccepted { key, owner, token, version, .. } => {
                let resource = self.resources.entry(key).or_default();
                let (number, owner) = (resource.writes + 1, owner.as_ref());
                let write = Write { number, version: *version, at: event.at, owner, token: *token };
                resource.judge(key, write, holders, verdicts);
                resource.keep(write);
            }
            _ => {}
        }
    }
}

impl<'h> Resource<'h> {
    fn judge(&self, key: &'h Name, write: Write<'h>, holders: &Holders<'h>, verdicts: &mut Verdicts) {
        let Some(known) = write.owner.and_then(|owner| self.readers.get(owner)) else { return };
        // It is another owner's: a reader has seen its own.
        let Some(lost) = self.last.filter(|last| last.number > known.writes) else { return };
        let writer = holders.process(key, write.owner, write.token);
        let victim = holders.process(key, lost.owner, lost.token);
        let detail = format!(
            "{writer} (token {}) read version {} at {}, {victim} (token {}) wrote version {} at {}, and {writer} \
             overwrote it at {} without having seen it",
            write.token, known.read_version, known.read_at, lost.token, lost.version, lost.at, write.at,
        );
        verdicts.convict(VerdictKind::LostUpdate, write.at, key, &[&writer, &victim], detail);
    }

    fn keep(&mut self, write: Write<'h>) {
        self.writes = write.number;
        self.last = Some(write);
        if let Some(known) = write.owner.and_then(|owner| self.readers.get_mut(owner)) {
            known.writes = write.number;
        }
    }
}
