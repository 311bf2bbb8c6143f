//! The events that led to a verdict, and the faults that took part.
//!
//! A path has, for each process of the verdict, its last grant before the verdict, the end of its lease on the
//! server, its last extension and renewal, and its last use of the resource; without a grant, its request. A
//! fault took part if it struck one of these processes, a server or the resource, or one of their links, and
//! was not over before the path began.

use std::collections::{BTreeMap, BTreeSet};

use super::verdict::{Verdict, VerdictKind};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Effect, Kind, Name};

/// A history, in which the paths of verdicts are found without reading it again for each.
pub(super) struct Paths<'h> {
    history: &'h [Event],
    /// The numbers of the events of each key.
    by_key: BTreeMap<&'h Name, Vec<usize>>,
    faults: Vec<Fault<'h>>,
    clients: BTreeSet<&'h Name>,
}

/// A fault, a death or a promotion.
struct Fault<'h> {
    /// The number of its first event.
    event: usize,
    number: Option<u64>,
    process: &'h Name,
    /// The links that it struck.
    links: &'h [(Name, Name)],
    /// The time at which it was over; `None` if it was in force to the end, or leaves its mark for good.
    over: Option<Nanos>,
}

impl<'h> Paths<'h> {
    pub(super) fn of(history: &'h [Event]) -> Self {
        let mut paths =
            Self { history, by_key: BTreeMap::new(), faults: Vec::new(), clients: BTreeSet::new() };
        for (number, event) in history.iter().enumerate() {
            if let Some(key) = event.kind.key() {
                paths.by_key.entry(key).or_default().push(number);
            }
            paths.note_fault(number, event);
            if event.kind.name().target() == "dlock" || event.kind.name().target() == "worker" {
                paths.clients.insert(&event.process);
            }
        }
        paths
    }

    /// Returns the numbers of the events that led to the verdict, in order.
    pub(super) fn because(&self, verdict: &Verdict) -> Vec<usize> {
        let end =
            verdict.event.unwrap_or_else(|| self.history.partition_point(|event| event.at <= verdict.at));
        let mut path = BTreeSet::new();
        for process in &verdict.processes {
            self.follow(process, verdict, end, &mut path);
        }
        let begin = path.first().copied().unwrap_or(end);
        let begin = self.history.get(begin).map_or(verdict.at, |event| event.at);
        let faults = self.faults.iter().take_while(|fault| fault.event < end);
        path.extend(faults.filter(|fault| self.took_part(fault, verdict, begin)).map(|fault| fault.event));
        path.into_iter().collect()
    }

    /// Adds the path of one process of the verdict.
    fn follow(&self, process: &Name, verdict: &Verdict, end: usize, path: &mut BTreeSet<usize>) {
        let of_key = self.by_key.get(&verdict.key).map_or(&[][..], Vec::as_slice);
        let of_key = &of_key[..of_key.partition_point(|number| *number < end)];
        let is_own = |number: &&usize| self.history[**number].process == *process;
        let last = |is_meant: fn(&Kind) -> bool| {
            let own = of_key.iter().rev().filter(is_own);
            own.copied().find(|number| is_meant(&self.history[*number].kind))
        };
        // A user's own process may only record that it entered a section.
        let grant = last(|kind| matches!(kind, Kind::LeaseAcquired { .. }))
            .or_else(|| last(|kind| matches!(kind, Kind::SectionEntered { .. })));
        let Some(grant) = grant else {
            path.extend(last(|kind| matches!(kind, Kind::LeaseRequested { .. })));
            return;
        };
        path.insert(grant);
        let (Kind::LeaseAcquired { owner, .. } | Kind::SectionEntered { owner, .. }) =
            &self.history[grant].kind
        else {
            return;
        };
        let after = &of_key[of_key.partition_point(|number| *number < grant)..];
        path.extend(after.iter().find(|number| is_end(&self.history[**number].kind, owner)));
        for is_step in [is_extension, is_renewal, is_use] {
            path.extend(
                after.iter().rev().find(|number| is_step(&self.history[**number].kind, verdict, owner)),
            );
        }
    }

    fn note_fault(&mut self, event: usize, of: &'h Event) {
        let process = &of.process;
        match &of.kind {
            // Of a fault that strikes again and again, the first time.
            Kind::FaultApplied { fault, effect, .. } => {
                if self.faults.iter().any(|known| known.number == Some(*fault)) {
                    return;
                }
                let links: &[_] = if let Effect::Link { links, .. } = effect { links } else { &[] };
                // A step of a clock and a loss of data stay.
                let is_over = matches!(effect, Effect::Link { .. }) && effect.is_instant();
                let over = is_over.then_some(of.at);
                self.faults.push(Fault { event, number: Some(*fault), process, links, over });
            }
            Kind::ProcessCrashed { .. } | Kind::ServerPromoted { .. } => {
                self.faults.push(Fault { event, number: None, process, links: &[], over: None });
            }
            Kind::FaultHealed { fault, .. } => {
                if let Some(known) = self.faults.iter_mut().find(|known| known.number == Some(*fault)) {
                    known.over = Some(of.at);
                }
            }
            _ => {}
        }
    }

    fn took_part(&self, fault: &Fault<'_>, verdict: &Verdict, begin: Nanos) -> bool {
        let is_meant =
            |process: &Name| verdict.processes.contains(process) || !self.clients.contains(process);
        let is_near = match fault.links {
            [] => is_meant(fault.process),
            links => links.iter().any(|(from, to)| is_meant(from) && is_meant(to)),
        };
        is_near && fault.over.is_none_or(|over| over >= begin)
    }
}

/// Returns true if a server dropped the key of `owner`.
fn is_end(kind: &Kind, owner: &Name) -> bool {
    match kind {
        Kind::KeyExpired { owner: Some(ended), .. } | Kind::KeyDeleted { owner: ended, .. } => ended == owner,
        _ => false,
    }
}

/// Returns true if a server extended the key of `owner`.
fn is_extension(kind: &Kind, _: &Verdict, owner: &Name) -> bool {
    matches!(kind, Kind::KeyExtended { owner: extended, .. } if extended == owner)
}

/// Returns true if `owner` renewed its belief in the lease, and the verdict is about beliefs.
fn is_renewal(kind: &Kind, verdict: &Verdict, owner: &Name) -> bool {
    let about = [VerdictKind::TwoValid, VerdictKind::Unheld];
    matches!(kind, Kind::LeaseRenewed { owner: by, .. } if by == owner) && about.contains(&verdict.kind)
}

/// Returns true if `owner` wrote or read the resource, and the verdict is about writes.
fn is_use(kind: &Kind, verdict: &Verdict, owner: &Name) -> bool {
    let about = [VerdictKind::StaleWrite, VerdictKind::LateWrite, VerdictKind::LostUpdate];
    let (Kind::WriteAccepted { owner: Some(by), .. }
    | Kind::ConditionalAccepted { owner: Some(by), .. }
    | Kind::ResourceRead { owner: Some(by), .. }) = kind
    else {
        return false;
    };
    about.contains(&verdict.kind) && by == owner
}
