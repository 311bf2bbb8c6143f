//! `overlap`: mutual exclusion, judged where it matters: at the critical sections, in true time.
//!
//! A section lasts from `section_entered` to `section_left`; a lease that is lost does not end it. A process
//! that crashes leaves its sections; a section that is still open when the history ends was open until then.
//! Two acquisitions make one verdict, however often they overlap.
//!
//! Source: the mutual exclusion property of Lamport, "The Mutual Exclusion Problem" (1986), part II: the
//! intervals of two critical sections are not concurrent.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Overlap<'h> {
    open: BTreeMap<&'h Name, Vec<Section<'h>>>,
    met: BTreeSet<(&'h Name, Acquisition<'h>, Acquisition<'h>)>,
}

#[derive(Clone, Copy)]
struct Section<'h> {
    by: Acquisition<'h>,
    token: u64,
    since: Nanos,
}

/// A process and an owner, since two tasks that share one owner token by mistake are two holders.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Acquisition<'h> {
    process: &'h Name,
    owner: &'h Name,
}

impl<'h> Judge<'h> for Overlap<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        match &event.kind {
            Kind::SectionEntered { key, owner, token } => {
                let by = Acquisition { process, owner };
                self.enter(key, Section { by, token: *token, since: event.at }, verdicts);
            }
            Kind::SectionLeft { key, owner, .. } => {
                let by = Acquisition { process, owner };
                if let Some(sections) = self.open.get_mut(key) {
                    sections.retain(|section| section.by != by);
                }
            }
            Kind::ProcessCrashed { .. } => self.open.retain(|_, sections| {
                sections.retain(|section| section.by.process != process);
                !sections.is_empty()
            }),
            _ => {}
        }
    }
}

impl<'h> Overlap<'h> {
    fn enter(&mut self, key: &'h Name, second: Section<'h>, verdicts: &mut Verdicts) {
        let sections = self.open.entry(key).or_default();
        if sections.iter().any(|section| section.by == second.by) {
            return;
        }
        for first in sections.iter() {
            if self.met.insert((key, first.by.min(second.by), first.by.max(second.by))) {
                convict(key, first, &second, verdicts);
            }
        }
        sections.push(second);
    }
}

fn convict(key: &Name, first: &Section<'_>, second: &Section<'_>, verdicts: &mut Verdicts) {
    let detail = format!(
        "{} (token {}) was still in its critical section, since {}, when {} (token {}) entered at {}",
        first.by.process, first.token, first.since, second.by.process, second.token, second.since,
    );
    let processes = [first.by.process, second.by.process];
    verdicts.convict(VerdictKind::Overlap, second.since, key, &processes, detail);
}
