//! The judgement of a live history: its verdicts, its counts, and what can't be judged.

use std::fmt;
use std::time::Duration;

use history::{Event, Fairness, Kind, Nanos, Rules, Summary, Verdict, VerdictKind, audit};
use serde::Serialize;

pub use crate::limits::DATA_LOST;
use crate::limits::explain;

/// A history, judged.
#[derive(Debug, Serialize)]
pub struct Judgement {
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Writes accepted and refused, and by which worker.
    pub summary: Summary,
    /// The order of arrival compared with the order of grants.
    pub fairness: Fairness,
    /// The number of events.
    pub events: usize,
    /// The verdicts that can't be judged, and why.
    pub not_judged: Vec<NotJudged>,
    /// For each verdict, the fault that explains it, if any: then no promise is broken.
    pub explanations: Vec<Option<&'static str>>,
    /// The number of events that a verdict can be about.
    #[serde(skip)]
    judged: usize,
}

/// The order in which a lock serves its waiters, as far as the audit may rely on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// Nothing, or there is none.
    #[default]
    Unknown,
    /// Waiters are served in the order of the places that they report. A waiter that is paused may report a
    /// place that it had lost.
    Reported,
    /// As `Reported`, and the token of a grant is its place, which a waiter has until it leaves (etcd,
    /// ZooKeeper): what the events of clients prove is then judged, whatever faults there are.
    TokensArePlaces,
}

/// A kind of verdict that this history can't show.
#[derive(Debug, Serialize)]
pub struct NotJudged {
    /// The kind.
    pub kind: VerdictKind,
    /// Why.
    pub why: &'static str,
}

impl Judgement {
    /// Judges `history`. With `fifo` it judges the order of grants, with `served_within` also the progress
    /// since the last fault healed.
    pub fn of(history: &[Event], fifo: bool, served_within: Option<Duration>) -> Self {
        Self::of_queue(history, if fifo { Queue::Reported } else { Queue::Unknown }, served_within)
    }

    /// Judges as [`Judgement::of`] does, and relies on `queue` for the order and the number of waiters.
    pub fn of_queue(history: &[Event], queue: Queue, served_within: Option<Duration>) -> Self {
        let end = history.last().map_or(Nanos(0), |event| event.at);
        let healed_at = served_within.and(healed_at(history));
        let (fifo, tokens_are_places) = (queue == Queue::Reported, queue == Queue::TokensArePlaces);
        let rules = Rules { fifo, tokens_are_places, end, healed_at, served_within, ..Rules::default() };
        let verdicts = audit(history, &rules);
        Self {
            explanations: explain(history, &verdicts),
            verdicts,
            summary: Summary::of(history),
            fairness: Fairness::of(history),
            events: history.len(),
            not_judged: not_judged(history, &rules),
            judged: history.iter().filter(|event| is_judged(&event.kind, &rules)).count(),
        }
    }

    /// Returns whether there is no violation. An overlap is none unless `strict`: any lease allows it when
    /// its holder pauses for longer than the lease. A verdict that a fault explains is none either.
    pub fn is_clean(&self, strict: bool) -> bool {
        let is_allowed = |(verdict, explanation): (&Verdict, Option<_>)| {
            verdict.kind == VerdictKind::Overlap || explanation.is_some()
        };
        if strict { self.verdicts.is_empty() } else { self.explained().all(is_allowed) }
    }

    /// Returns whether the history has anything to judge: a grant, a critical section, a task, or an access
    /// to the resource; a request, if it must be served in time.
    pub fn has_judged(&self) -> bool {
        self.judged > 0
    }

    /// Returns each verdict with the fault that explains it, if any.
    pub fn explained(&self) -> impl Iterator<Item = (&Verdict, Option<&'static str>)> {
        self.verdicts.iter().zip(self.explanations.iter().copied())
    }
}

/// Returns whether a verdict can be about such an event.
fn is_judged(kind: &Kind, rules: &Rules) -> bool {
    match kind {
        Kind::LeaseAcquired { .. } | Kind::SectionEntered { .. } | Kind::TaskStarted { .. } => true,
        Kind::LeaseRequested { .. } => rules.served_within.is_some(),
        kind => kind.name().target() == "resource",
    }
}

/// Returns the time at which the last fault healed: zero without faults, `None` while one is in force.
fn healed_at(history: &[Event]) -> Option<Nanos> {
    let mut open = 0_u32;
    let mut healed = Nanos(0);
    for event in history {
        match event.kind {
            Kind::FaultApplied { .. } => open += 1,
            Kind::FaultHealed { .. } => {
                open = open.saturating_sub(1);
                healed = event.at;
            }
            _ => {}
        }
    }
    (open == 0).then_some(healed)
}

/// Returns the verdicts that a live history can't show: it has the events of clients and the resource, not
/// the lock server's.
fn not_judged(history: &[Event], rules: &Rules) -> Vec<NotJudged> {
    let has = |wanted: fn(&Kind) -> bool| history.iter().any(|event| wanted(&event.kind));
    let server = has(|kind| matches!(kind, Kind::KeyGranted { .. }));
    let queued = has(|kind| matches!(kind, Kind::LeaseQueued { .. }));
    let reads = has(|kind| matches!(kind, Kind::ResourceRead { .. }));
    let resource = has(|kind| kind.name().target() == "resource");
    let sections = has(|kind| matches!(kind, Kind::SectionEntered { .. }));
    let observed = has(|kind| matches!(kind, Kind::TermObserved { .. }));
    let tasks = has(|kind| matches!(kind, Kind::TaskStarted { .. }));
    let flights = has(|kind| matches!(kind, Kind::FlightStarted { .. }));
    let released = has(|kind| matches!(kind, Kind::LeaseReleased { .. }));
    let bounded = has(|kind| matches!(kind, Kind::LeaseBounded { .. }));
    let proven = rules.tokens_are_places && queued && released;
    let no_flights = if flights {
        "the resource's history is not among the files"
    } else {
        "nobody made a single-flight call"
    };
    let reasons = [
        (!sections, VerdictKind::Overlap, "no worker's history is among the files"),
        (!resource, VerdictKind::StaleWrite, "the resource's history is not among the files"),
        (!resource, VerdictKind::LateWrite, "the resource's history is not among the files"),
        (!reads, VerdictKind::LostUpdate, "nobody read the resource"),
        (
            !server,
            VerdictKind::ForeignRelease,
            "only the lock server's own events show whose lock it deleted",
        ),
        (
            rules.healed_at.is_none(),
            VerdictKind::Stuck,
            "set --served-within, and wait until every fault has healed",
        ),
        (!(proven || rules.fifo && queued), VerdictKind::Unfair, no_order(rules)),
        (!rules.exact, VerdictKind::TwoValid, "live events are stamped when they are recorded"),
        (!rules.exact, VerdictKind::Unheld, "live events are stamped when they are recorded"),
        (rules.servers.is_empty(), VerdictKind::Leaked, "only the lock server's own events show its keys"),
        (!sections, VerdictKind::AfterRelease, "no worker's history is among the files"),
        (rules.servers.is_empty(), VerdictKind::Idle, "only the lock server's own events show its keys"),
        (!observed, VerdictKind::TermRegressed, "nobody observed an election"),
        (!tasks, VerdictKind::RanTwice, "nobody ran ticks or jobs"),
        (!tasks, VerdictKind::TaskLost, "nobody ran ticks or jobs"),
        (!proven || !bounded, VerdictKind::Crowded, no_number(rules, bounded)),
        (!flights || !resource, VerdictKind::ComputedTwice, no_flights),
        (!flights || !resource, VerdictKind::UnstoredResult, no_flights),
        (!flights || !resource, VerdictKind::OldResult, no_flights),
    ];
    reasons
        .into_iter()
        .filter(|(missing, ..)| *missing)
        .map(|(_, kind, why)| NotJudged { kind, why })
        .collect()
}

/// Returns why the order of grants can't be judged.
const fn no_order(rules: &Rules) -> &'static str {
    match (rules.fifo, rules.tokens_are_places) {
        (true, _) => "nobody reported a place in a queue",
        (_, true) => "nobody waited in a queue and was served after a release",
        _ => {
            "only places that are tokens prove who came first: set --queue for etcd and ZooKeeper, or --fifo for \
             another queue in a run without pauses"
        }
    }
}

/// Returns why the number of waiters can't be judged.
const fn no_number(rules: &Rules, bounded: bool) -> &'static str {
    match (bounded, rules.tokens_are_places) {
        (false, _) => "nobody limited the waiters of a lock",
        (true, true) => "nobody waited in a queue and was served after a release",
        (true, false) => {
            "only places that are tokens prove who waits: set --queue for etcd and ZooKeeper; a waiter of Redis \
             loses its place without a trace when it asks too late"
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verdicts, summary, fairness, events, not_judged, .. } = self;
        writeln!(
            f,
            "{events} events: {} grants, {} releases, {} renewals, {} writes accepted, {} refused, {} \
             overtakings",
            summary.grants,
            summary.releases,
            summary.renewals,
            summary.accepted.len(),
            summary.refused.len(),
            fairness.inversions,
        )?;
        for (verdict, explanation) in self.explained() {
            match explanation {
                Some(why) => writeln!(f, "{verdict} (explained: {why})")?,
                None => writeln!(f, "{verdict}")?,
            }
        }
        for NotJudged { kind, why } in not_judged {
            writeln!(f, "not judged: {kind} ({why})")?;
        }
        match verdicts.len() {
            0 => writeln!(f, "no verdicts"),
            1 => writeln!(f, "1 verdict"),
            count => writeln!(f, "{count} verdicts"),
        }
    }
}
