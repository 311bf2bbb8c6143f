//! The events that led to a verdict, and the faults that took part.
//!
//! A path has, for each process of the verdict, its last grant before the verdict, the end of its lease on
//! the server, its last extension and renewal, and its last use of the resource; without a grant, its
//! request. The claim of a job, and its run, count as a grant. Of a flight it also has the begin of the call.
//!
//! A fault took part if it was not over when the first of these processes asked, and if it struck one of
//! them, a server or the resource, or a link between these. A process takes part, too, if it ended a lease of
//! the path, or if some of several servers granted it the lock in the meantime and it never had it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Rules;
use super::verdict::{About, Verdict, VerdictKind};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Effect, Kind, Name};

/// A history, in which the paths of verdicts are found without reading it again for each.
pub(super) struct Paths<'h> {
    history: &'h [Event],
    /// The numbers of the events of each key.
    by_key: BTreeMap<&'h Name, Vec<usize>>,
    faults: Vec<Fault<'h>>,
    clients: BTreeSet<&'h Name>,
    /// The time for which messages of each fault may still be late after its end.
    in_flight: &'h BTreeMap<u64, Duration>,
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
    pub(super) fn of(history: &'h [Event], rules: &'h Rules) -> Self {
        let (by_key, faults, clients) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        let mut paths = Self { history, by_key, faults, clients, in_flight: &rules.in_flight };
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
        let until = || self.history.partition_point(|event| event.at <= verdict.at);
        let end = verdict.event.map_or_else(until, |event| event + 1);
        let of_key = self.by_key.get(&verdict.key).map_or(&[][..], Vec::as_slice);
        let of_key = &of_key[..of_key.partition_point(|number| *number < end)];
        let mut parties: BTreeSet<&Name> = verdict.processes.iter().collect();
        parties.extend(self.client_of(verdict.event));
        let mut path = BTreeSet::new();
        let asked = parties.iter().filter_map(|process| self.follow(process, verdict, of_key, &mut path));
        let begin = asked.min().unwrap_or(end);
        path.extend(self.call(verdict, of_key));
        parties.extend(path.iter().filter_map(|number| self.client_of(Some(*number))));
        parties.extend(self.half_granted(of_key));
        let begin = self.history.get(begin).map_or(verdict.at, |event| event.at);
        let faults = self.faults.iter().take_while(|fault| fault.event < end);
        let took_part = |fault: &&Fault<'_>| self.took_part(fault, &parties, begin);
        path.extend(faults.filter(took_part).map(|fault| fault.event));
        path.into_iter().filter(|number| Some(*number) != verdict.event).collect()
    }

    /// Adds the path of one process of the verdict. `of_key` are the events of the key up to the verdict.
    /// Returns the number of the event by which the process asked.
    fn follow(
        &self,
        process: &Name,
        verdict: &Verdict,
        of_key: &[usize],
        path: &mut BTreeSet<usize>,
    ) -> Option<usize> {
        let kind = |number: &usize| &self.history[*number].kind;
        let led_there = |number: &usize| Some(*number) != verdict.event;
        let last = |of: &[usize], is_meant: fn(&Kind) -> bool| {
            let own = of.iter().rev().filter(|number| self.history[**number].process == *process);
            own.copied().find(|number| is_meant(kind(number)))
        };
        if verdict.kind == VerdictKind::TermRegressed {
            let seen = of_key.iter().rev().filter(|number| self.history[**number].process == *process);
            let mut seen = seen.filter(|number| matches!(kind(number), Kind::TermObserved { .. }));
            path.extend(seen.find(|number| led_there(number)));
            return None;
        }
        // A user's own process may only record that it entered a section.
        let grant = last(of_key, |kind| matches!(kind, Kind::LeaseAcquired { .. }))
            .or_else(|| last(of_key, |kind| matches!(kind, Kind::SectionEntered { .. })))
            .or_else(|| last(of_key, is_claim_of_job));
        let (before, after) = match grant {
            Some(grant) => of_key.split_at(of_key.partition_point(|number| *number < grant)),
            None => (of_key, &[][..]),
        };
        let asked =
            last(before, |kind| matches!(kind, Kind::LeaseRequested { .. }) || is_step(kind, "asked"));
        let Some(grant) = grant else {
            path.extend(asked);
            return asked;
        };
        path.insert(grant);
        if verdict.event == Some(grant) {
            path.extend(asked);
        }
        let asked = asked.unwrap_or(grant);
        path.extend(self.freed(process, before, asked));
        if let Kind::LeaseAcquired { owner, .. } | Kind::SectionEntered { owner, .. } = kind(&grant) {
            // A server may drop the key before its answer arrives.
            let since = &of_key[of_key.partition_point(|number| *number < asked)..];
            path.extend(since.iter().find(|number| led_there(number) && is_end(kind(number), owner)));
            for is_due in [is_extension, is_renewal, is_use] {
                let is_meant = |number: &&usize| led_there(number) && is_due(kind(number), verdict, owner);
                path.extend(after.iter().rev().find(is_meant));
            }
        }
        // A client may remember how its own lease before this one ended.
        let released = of_key[..of_key.partition_point(|number| *number < asked)].iter().rev();
        let mut released = released.filter(|number| self.history[**number].process == *process);
        let released = released.find(|number| matches!(kind(number), Kind::LeaseReleaseRequested { .. }));
        Some(released.copied().unwrap_or(asked))
    }

    /// Returns the begin of the call that a verdict on a flight is about. `of_key` are the events of the key
    /// up to the verdict.
    fn call(&self, verdict: &Verdict, of_key: &[usize]) -> Option<usize> {
        let caller = match verdict.kind {
            VerdictKind::ComputedTwice | VerdictKind::UnstoredResult | VerdictKind::OldResult => {
                verdict.processes.first()?
            }
            _ => return None,
        };
        let is_begin = |number: &&usize| {
            let event = &self.history[**number];
            event.process == *caller && matches!(event.kind, Kind::FlightStarted { .. })
        };
        of_key.iter().rev().find(is_begin).copied()
    }

    /// Returns the event in which another client gave up the lock for which the process waited. `before` are
    /// the events before its grant, `asked` is its request.
    fn freed(&self, process: &Name, before: &[usize], asked: usize) -> Option<usize> {
        let stored = |number: &&usize| {
            matches!(
                self.history[**number].kind,
                Kind::KeyGranted { .. } | Kind::KeyDeleted { .. } | Kind::KeyExpired { .. }
            )
        };
        let waited = before[before.partition_point(|number| *number < asked)..].iter().rev().filter(stored);
        let by_it = |number: &&usize| self.client_of(Some(**number)) == Some(process);
        let freed = *waited.skip_while(|number| !by_it(number)).find(|number| !by_it(number))?;
        matches!(self.history[freed].kind, Kind::KeyDeleted { .. }).then_some(freed)
    }

    /// Returns the client for which a server acted in the event.
    fn client_of(&self, event: Option<usize>) -> Option<&'h Name> {
        match &self.history.get(event?)?.kind {
            Kind::KeyGranted { client, .. }
            | Kind::KeyExtended { client, .. }
            | Kind::KeyDeleted { client, .. } => Some(client),
            _ => None,
        }
    }

    /// Returns the clients to which some of several servers granted the lock in these events, and which did
    /// not have it after that.
    fn half_granted(&self, events: &[usize]) -> BTreeSet<&'h Name> {
        let (mut clients, mut servers) = (BTreeSet::new(), BTreeSet::new());
        for number in events {
            let event = &self.history[*number];
            match &event.kind {
                Kind::KeyGranted { client, .. } => {
                    clients.insert(client);
                    servers.insert(&event.process);
                }
                Kind::LeaseAcquired { .. } => drop(clients.remove(&event.process)),
                _ => {}
            }
        }
        if servers.len() > 1 { clients } else { BTreeSet::new() }
    }

    fn note_fault(&mut self, event: usize, of: &'h Event) {
        let process = &of.process;
        match &of.kind {
            // A fault may strike several times; its first event stands for all.
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
                    let late = self.in_flight.get(fault).copied().unwrap_or_default();
                    known.over = Some(of.at.after(late));
                }
            }
            _ => {}
        }
    }

    fn took_part(&self, fault: &Fault<'_>, parties: &BTreeSet<&Name>, begin: Nanos) -> bool {
        let is_meant = |process: &Name| parties.contains(process) || !self.clients.contains(process);
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

/// Returns true if the worker of a queue claimed a job, or began to run it.
fn is_claim_of_job(kind: &Kind) -> bool {
    matches!(kind, Kind::TaskStarted { .. }) || is_step(kind, "granted")
}

fn is_step(kind: &Kind, name: &str) -> bool {
    matches!(kind, Kind::WorkerStep { step, .. } if step.as_str() == name)
}

/// Returns true if a server extended the key of `owner`.
fn is_extension(kind: &Kind, _: &Verdict, owner: &Name) -> bool {
    matches!(kind, Kind::KeyExtended { owner: extended, .. } if extended == owner)
}

/// Returns true if `owner` renewed its belief in the lease, and the verdict is about beliefs.
fn is_renewal(kind: &Kind, verdict: &Verdict, owner: &Name) -> bool {
    matches!(kind, Kind::LeaseRenewed { owner: by, .. } if by == owner)
        && verdict.kind.about() == About::Lease
}

/// Returns true if `owner` wrote or read the resource, and the verdict is about writes.
fn is_use(kind: &Kind, verdict: &Verdict, owner: &Name) -> bool {
    let (Kind::WriteAccepted { owner: Some(by), .. }
    | Kind::ConditionalAccepted { owner: Some(by), .. }
    | Kind::ResourceRead { owner: Some(by), .. }) = kind
    else {
        return false;
    };
    verdict.kind.about() == About::Resource && by == owner
}
