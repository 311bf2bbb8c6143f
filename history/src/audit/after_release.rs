//! `after_release`: a client went on after it had begun to release its own lock: it sent a write, or was
//! still in its critical section when another one entered.
//!
//! A release is the client's own statement that it is done. No pause, no lost message and no clock explains
//! what it does afterwards, so no fault excuses it. A write that was sent before the release and arrives
//! after it is another matter: `stale_write` and `late_write` are about that.
//!
//! A write without `write_sent` is no evidence. Owner and process must be the releasing ones; for a section
//! or a write that names another owner or none, key, process and token must be. A new grant under the same
//! owner ends the release.
//!
//! Source: the well-formedness of Lamport, "The Mutual Exclusion Problem" (1986), part II: a process leaves
//! its critical section before its exit protocol.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

/// A process and a key.
type Holding<'h> = (&'h Name, &'h Name);

#[derive(Default)]
pub(super) struct AfterRelease<'h> {
    /// The releases of each process, by key.
    released: BTreeMap<Holding<'h>, Vec<Release<'h>>>,
    /// The sections that are open, with their owners and tokens.
    open: BTreeMap<Holding<'h>, Vec<(&'h Name, u64)>>,
    /// The releases that have made a verdict.
    convicted: BTreeSet<(Holding<'h>, u64, Nanos)>,
}

#[derive(Clone, Copy)]
struct Release<'h> {
    owner: &'h Name,
    token: u64,
    at: Nanos,
}

impl<'h> Judge<'h> for AfterRelease<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        match &event.kind {
            Kind::LeaseAcquired { key, owner, token, .. } => {
                let releases = self.released.entry((process, key)).or_default();
                let is_same = |release: &Release<'_>| *token != 0 && release.token == *token;
                releases.retain(|release| release.owner != owner && !is_same(release));
            }
            Kind::LeaseReleaseRequested { key, owner, token, .. } => {
                let release = Release { owner, token: *token, at: event.at };
                self.released.entry((process, key)).or_default().push(release);
            }
            Kind::WriteSent { key, owner, token, .. } => {
                let release = self.release((process, key), owner.as_ref(), *token);
                if let Some(release) = release {
                    let did = format!("sent a write at {}", event.at);
                    self.convict((process, key), release, (event.at, &did), verdicts);
                }
            }
            Kind::SectionEntered { key, owner, token } => {
                self.judge_open(event, key, verdicts);
                self.open.entry((process, key)).or_default().push((owner, *token));
            }
            Kind::SectionLeft { key, owner, token, .. } => {
                if let Some(open) = self.open.get_mut(&(process, key)) {
                    open.retain(|section| *section != (owner, *token));
                }
            }
            Kind::ProcessCrashed { .. } => self.open.retain(|(inside, _), _| *inside != process),
            _ => {}
        }
    }
}

impl<'h> AfterRelease<'h> {
    /// Judges the other processes that are inside the section when the event's process enters it.
    fn judge_open(&mut self, event: &Event, key: &'h Name, verdicts: &mut Verdicts) {
        let did = format!("was still in its critical section when {} entered at {}", event.process, event.at);
        let others = self.open.iter().filter(|((inside, of), _)| *of == key && **inside != event.process);
        let found: Vec<_> = others
            .flat_map(|(holding, sections)| sections.iter().map(move |section| (*holding, *section)))
            .filter_map(|(holding, (owner, token))| {
                Some((holding, self.release(holding, Some(owner), token)?))
            })
            .collect();
        for (holding, release) in found {
            self.convict(holding, release, (event.at, &did), verdicts);
        }
    }

    fn release(&self, holding: Holding<'h>, owner: Option<&Name>, token: u64) -> Option<Release<'h>> {
        let is_meant =
            |release: &&Release<'_>| owner == Some(release.owner) || (token != 0 && token == release.token);
        self.released.get(&holding)?.iter().find(is_meant).copied()
    }

    fn convict(
        &mut self,
        holding: Holding<'h>,
        release: Release<'h>,
        (at, did): (Nanos, &str),
        verdicts: &mut Verdicts,
    ) {
        if self.convicted.insert((holding, release.token, release.at)) {
            let (process, key) = holding;
            let detail = format!(
                "{process} (token {}) had begun to release the lock at {}, and {did}",
                release.token, release.at,
            );
            verdicts.convict(VerdictKind::AfterRelease, at, key, &[process], detail);
        }
    }
}
