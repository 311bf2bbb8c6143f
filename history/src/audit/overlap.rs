//! `overlap`: mutual exclusion, judged where it matters: at the critical sections, in true time.
//!
//! A section lasts from `section_entered` to `section_left`; a lease that is lost does not end it. A process
//! that crashes leaves its sections; a section that is still open when the history ends was open until then.
//! The same acquisitions make one verdict, however often they overlap. How many may be inside at once is the
//! key's [`Capacity`](super::Capacity).
//!
//! Source: the mutual exclusion property of Lamport, "The Mutual Exclusion Problem" (1986), part II: the
//! intervals of two critical sections are not concurrent.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::capacity::{Capacities, joined};
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Overlap<'h> {
    open: BTreeMap<&'h Name, Vec<Section<'h>>>,
    /// By key: acquisitions that were inside together, in order.
    met: BTreeSet<(&'h Name, Vec<Acquisition<'h>>)>,
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

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        match &event.kind {
            Kind::SectionEntered { key, owner, token } => {
                let by = Acquisition { process, owner };
                let section = Section { by, token: *token, since: event.at };
                self.enter(key, section, &state.capacities, verdicts);
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
    fn enter(
        &mut self,
        key: &'h Name,
        new: Section<'h>,
        capacities: &Capacities<'h>,
        verdicts: &mut Verdicts,
    ) {
        let sections = self.open.entry(key).or_default();
        if sections.iter().any(|section| section.by == new.by) {
            return;
        }
        let live: Vec<&Section<'h>> = sections.iter().collect();
        for inside in capacities.crowded(key, &live, &new, |section| section.by.owner) {
            let mut met: Vec<_> = inside.iter().map(|section| section.by).chain([new.by]).collect();
            met.sort_unstable();
            if self.met.insert((key, met)) {
                convict(key, &inside, &new, verdicts);
            }
        }
        sections.push(new);
    }
}

fn convict(key: &Name, inside: &[&Section<'_>], new: &Section<'_>, verdicts: &mut Verdicts) {
    let grants: Vec<_> = inside
        .iter()
        .map(|section| (section, format!("{} (token {})", section.by.process, section.token)))
        .collect();
    let detail = match &grants[..] {
        [(first, name)] => format!(
            "{name} was still in its critical section, since {}, when {} (token {}) entered at {}",
            first.since, new.by.process, new.token, new.since,
        ),
        _ => format!(
            "{} were still in their critical sections when {} (token {}) entered at {}",
            joined(&grants.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>()),
            new.by.process,
            new.token,
            new.since,
        ),
    };
    let processes: Vec<&Name> =
        inside.iter().map(|section| section.by.process).chain([new.by.process]).collect();
    verdicts.convict(VerdictKind::Overlap, new.since, key, &processes, detail);
}
