//! One sentence that says what happened in a failed run, made from its events.

use std::collections::BTreeSet;

use history::text::{Names, holder};
use history::{Event, Kind, Name, Nanos, Verdict, VerdictKind};

use super::asking::Asking;
use super::cause::{Broken, Cause};
use super::nodes::Nodes;
use crate::faults::{Fault, Trigger};
use crate::sim::{CorePhase, Report, RunError, Schedule};
use crate::span::Span;

/// The words for a lease that one server, or one cluster, should store and does not.
const NOWHERE: &str = " that was not stored";

/// Says what happened: the grants of the processes that take part, the faults, the core phase, the fate of
/// the lock, and the broken promise.
pub(super) fn sentence<O>(
    schedule: &Schedule<O>,
    cause: &Cause,
    verdict: Option<&Verdict>,
    run: &Result<Report, RunError>,
) -> String {
    let report = match run {
        Ok(report) => report,
        Err(error) => return format!("{error}."),
    };
    match verdict {
        Some(verdict) => of_verdict(schedule, verdict, report),
        None => of_check(schedule, cause, report),
    }
}

/// Says how a verdict came about.
pub(super) fn of_verdict<O>(schedule: &Schedule<O>, verdict: &Verdict, report: &Report) -> String {
    let story = Story::of(schedule, report);
    let mut clauses = story.clauses(verdict);
    clauses.push(format!("so {}: {}", story.outcome(verdict), verdict.kind));
    clauses.join(", ") + "."
}

/// Says what a fault is, and at which point it strikes.
pub(super) fn fault_in_words(fault: &Fault) -> String {
    let what = action_in_words(fault);
    match &fault.when {
        Trigger::At(at) => format!("{what} at {at}"),
        Trigger::After { process, point, nth: 1, .. } => format!("{what} after `{point}` of {process}"),
        Trigger::After { process, point, nth, .. } => {
            format!("{what} after `{point}` number {nth} of {process}")
        }
    }
}

fn action_in_words(fault: &Fault) -> String {
    format!("{} of {}", fault.what.verb(), fault.what.target())
}

/// Writes the sentence on a check that forbids no verdict: the faults that struck, and the check's problem.
fn of_check<O>(schedule: &Schedule<O>, cause: &Cause, report: &Report) -> String {
    let (story, end) = (Story::of(schedule, report), report.events.len());
    let mut clauses = story.told(story.strikes(end).collect(), end);
    let finding = report.findings.iter().find(|finding| Broken::Check(finding.check.clone()) == cause.broken);
    let problem = finding.map_or("", |finding| finding.problem.as_str());
    clauses.push(format!("so {} did not hold: {problem}", cause.broken));
    clauses.join(", ") + "."
}

/// The history from which a sentence is made.
struct Story<'a> {
    faults: &'a [Fault],
    core: Option<&'a CorePhase>,
    events: &'a [Event],
    asking: Asking<'a>,
    names: &'a Names,
    /// The lock servers, if several vote.
    nodes: Option<Nodes<'a>>,
}

impl<'a> Story<'a> {
    fn of<O>(schedule: &'a Schedule<O>, report: &'a Report) -> Self {
        let Schedule { faults, core, .. } = schedule;
        let (core, Report { events, names, .. }) = (core.as_ref(), report);
        Self { faults, core, events, asking: Asking::of(core, report), names, nodes: Nodes::of(report) }
    }

    /// Returns the events that led to the verdict and the one that broke the rule, one clause each, in the
    /// order of time.
    fn clauses(&self, verdict: &Verdict) -> Vec<String> {
        let end = self.events.partition_point(|event| event.at <= verdict.at);
        let told = verdict.because.iter().copied().chain(verdict.event);
        self.told(
            told.filter(|at| !self.is_of_core(&self.events[*at])).collect(),
            verdict.event.unwrap_or(end),
        )
    }

    /// Returns the clauses of the events with these numbers, and the clause of the core phase if it began
    /// before `end`.
    fn told(&self, told: BTreeSet<usize>, end: usize) -> Vec<String> {
        let begins =
            |core: &&CorePhase| self.events.partition_point(|event| event.at.0 < core.at.as_nanos()) < end;
        let core = self.core.filter(begins);
        let is_before = |at: &usize| core.is_none_or(|core| self.events[*at].at.0 < core.at.as_nanos());
        let (before, after): (Vec<_>, Vec<_>) = told.into_iter().partition(is_before);
        let clauses = |numbers: Vec<usize>| numbers.into_iter().map(|at| self.clause(at));
        clauses(before).chain(core.map(core_in_words)).chain(clauses(after)).collect()
    }

    /// Returns the numbers of the events before `end` at which faults struck, the first of each fault. Leaves
    /// out those of the core phase, which has a clause of its own.
    fn strikes(&self, end: usize) -> impl Iterator<Item = usize> {
        let mut seen = BTreeSet::new();
        (0..end).filter(move |at| match &self.events[*at].kind {
            _ if self.is_of_core(&self.events[*at]) => false,
            Kind::FaultApplied { fault, .. } => seen.insert(*fault),
            Kind::ProcessCrashed { .. } | Kind::ServerPromoted { .. } => true,
            _ => false,
        })
    }

    /// Returns true if the event is a fault or a crash by which the core phase breaks a process for good.
    fn is_of_core(&self, event: &Event) -> bool {
        let Some(core) = self.core.filter(|core| event.at.0 >= core.at.as_nanos()) else { return false };
        match &event.kind {
            Kind::FaultApplied { fault, .. } => *fault >= self.faults.len() as u64,
            Kind::ProcessCrashed { .. } => core.excludes(event.process.as_str()),
            _ => false,
        }
    }

    /// Returns the last grant before `end`. A user's own process may only record that it entered a section.
    fn grant(&self, end: usize, process: &Name, key: &Name) -> Option<usize> {
        let acquired = |event: &Event| {
            matches!(&event.kind, Kind::LeaseAcquired { key: of, .. } if of == key)
                && event.process == *process
        };
        let entered = |event: &Event| {
            matches!(&event.kind, Kind::SectionEntered { key: of, .. } if of == key)
                && event.process == *process
        };
        self.last(end, acquired).or_else(|| self.last(end, entered))
    }

    /// Says what is wrong. A waiter that is stuck after the begin of the core phase is in the core: no other
    /// one is judged. A waiter that stopped asking was not refused.
    fn outcome(&self, verdict: &Verdict) -> String {
        let said = outcome(verdict, self.names);
        let is_in_core = |core: &CorePhase| core.at.as_nanos() <= verdict.at.0;
        match verdict.kind {
            VerdictKind::Stuck if verdict.processes.len() == 1 => match self.asking.gave_up(verdict) {
                Some(last) => format!("{said}, and never asked again after {last}"),
                None if self.core.is_some_and(is_in_core) => format!("the core was not served ({said})"),
                None => said,
            },
            VerdictKind::Unheld | VerdictKind::TwoValid => match self.stored_on(verdict) {
                Some(nodes) => format!("{}{nodes}", said.trim_end_matches(NOWHERE)),
                None => said,
            },
            _ => said,
        }
    }

    /// Says on how many of the lock servers the leases of the verdict are stored, if several servers vote.
    fn stored_on(&self, verdict: &Verdict) -> Option<String> {
        let (nodes, key) = (self.nodes.as_ref()?, &verdict.key);
        let end = self.events.partition_point(|event| event.at <= verdict.at);
        let on = |process| {
            let owner = owner_of(&self.events[self.grant(end, process, key)?].kind)?;
            Some(nodes.storing(key, owner, end).to_string())
        };
        let counts = verdict.processes.iter().map(on).collect::<Option<Vec<_>>>()?;
        let stored = if verdict.kind == VerdictKind::Unheld { " that was stored" } else { ", stored" };
        Some(format!("{stored} on {} of {} nodes", counts.join(" and "), nodes.count()))
    }

    fn last(&self, end: usize, is_meant: impl Fn(&Event) -> bool) -> Option<usize> {
        (0..end).rev().find(|at| is_meant(&self.events[*at]))
    }

    fn clause(&self, at: usize) -> String {
        let event = &self.events[at];
        let nodes = self.on_nodes(at).unwrap_or_default();
        format!("{}{nodes} at {}", self.what(event), event.at)
    }

    /// Says on which of several lock servers the event happened, or on how many of them a grant was stored.
    fn on_nodes(&self, at: usize) -> Option<String> {
        let (nodes, event) = (self.nodes.as_ref()?, &self.events[at]);
        match &event.kind {
            Kind::LeaseAcquired { key, owner, .. } => {
                let stored = nodes.storing(key, owner, at);
                Some(format!(" (stored on {stored} of {} nodes)", nodes.count()))
            }
            Kind::KeyExtended { .. } | Kind::KeyDeleted { .. } | Kind::KeyExpired { .. } => {
                Some(format!(" on {}", event.process))
            }
            _ => None,
        }
    }

    fn what(&self, event: &Event) -> String {
        let (process, key) = (&event.process, |key| self.names.key(key));
        match &event.kind {
            Kind::LeaseRequested { key: of, .. } => format!("{process} asked for {}", key(of)),
            Kind::LeaseAcquired { key: of, token: 0, .. } => format!("{process} was granted {}", key(of)),
            Kind::LeaseAcquired { key: of, token, .. } => {
                format!("{process} was granted {} with token {token}", key(of))
            }
            Kind::LeaseRenewed { token, valid_micros, .. } => {
                let valid = valid_micros.map(|micros| Span::from_nanos(micros.saturating_mul(1000)));
                let valid = valid.map(|valid| format!(" (valid for {valid})")).unwrap_or_default();
                format!("{process} renewed its lease with token {token}{valid}")
            }
            Kind::LeaseTtlChanged { token, ttl_millis, .. } => {
                let ttl =
                    ttl_millis.map(Span::from_millis).map(|ttl| format!(" of {ttl}")).unwrap_or_default();
                format!("{process} asked for a TTL{ttl} for its lease with token {token}")
            }
            Kind::SectionEntered { .. } => format!("{process} entered its critical section"),
            Kind::TermObserved { owner, token, .. } => {
                format!("{process} saw {} lead in term {token}", holder(owner.as_ref()))
            }
            Kind::KeyGranted { owner, .. } => format!("{process} stored the lock of {}", holder(Some(owner))),
            Kind::KeyExtended { owner, client, ttl_millis, .. } => {
                let ttl = ttl_millis.map(|millis| format!(" to a TTL of {}", Span::from_millis(millis)));
                format!("{client} extended the lock of {}{}", holder(Some(owner)), ttl.unwrap_or_default())
            }
            Kind::KeyDeleted { owner, client, .. } => {
                format!("{client} deleted the lock of {}", holder(Some(owner)))
            }
            Kind::KeyExpired { owner, .. } => format!("the lock of {} expired", holder(owner.as_ref())),
            Kind::WriteAccepted { owner, token, .. } => {
                format!("{process} accepted the write of {} with token {token}", holder(owner.as_ref()))
            }
            Kind::ConditionalAccepted { owner, expected, .. } => {
                let writer = holder(owner.as_ref());
                format!("{process} accepted the write of {writer} on version {expected}")
            }
            Kind::ResourceRead { owner, .. } => format!("{} read {process}", holder(owner.as_ref())),
            Kind::FlightStarted { key: of, above: 0 } => format!("{process} wanted a result of {}", key(of)),
            Kind::FlightStarted { key: of, above } => {
                format!("{process} wanted a result of {} above token {above}", key(of))
            }
            Kind::ComputationStarted { token, .. } => format!("{process} computed with token {token}"),
            Kind::ResultReturned { token, .. } => format!("{process} returned the result with token {token}"),
            Kind::FaultApplied { fault, .. } => {
                let number = usize::try_from(*fault).ok();
                let fault = number.and_then(|number| self.faults.get(number));
                fault.map_or_else(|| "a fault struck".to_owned(), |fault| action_in_words(fault) + " struck")
            }
            Kind::ProcessCrashed { .. } => format!("{process} died"),
            Kind::ServerPromoted { .. } => format!("{process} was promoted"),
            other => format!("{process} had {}", other.name().as_str()),
        }
    }
}

fn owner_of(kind: &Kind) -> Option<&Name> {
    match kind {
        Kind::LeaseAcquired { owner, .. } | Kind::SectionEntered { owner, .. } => Some(owner),
        _ => None,
    }
}

/// Says when the core phase begins, and which processes it leaves broken.
fn core_in_words(core: &CorePhase) -> String {
    let began = format!("the core phase began at {}", Nanos(core.at.as_nanos()));
    let broken = [(&core.crashed, "crashed"), (&core.cut, "cut off")].into_iter();
    let broken: Vec<String> = broken
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, how)| format!("{} {how}", names.join(" and ")))
        .collect();
    if broken.is_empty() { began } else { format!("{began} with {} for good", broken.join(" and ")) }
}

/// Says what is wrong, with the names of the processes.
fn outcome(verdict: &Verdict, names: &Names) -> String {
    let (at, key) = (verdict.at, names.key(&verdict.key));
    let name = |number: usize| verdict.processes.get(number).map_or("somebody", Name::as_str);
    let (one, other) = (name(0), name(1));
    match verdict.kind {
        VerdictKind::Overlap => format!("{one} and {other} were in their critical sections at once"),
        VerdictKind::StaleWrite => format!("the write of {one} replaced the newer one of {other}"),
        VerdictKind::LateWrite => format!("the write of {one} came after {other} had read"),
        VerdictKind::LostUpdate => {
            format!("{one} overwrote what {other} had written, without having seen it")
        }
        VerdictKind::TokenRegressed => format!("the token of {one} is not above the earlier one of {other}"),
        VerdictKind::ForeignRelease => format!("{one} changed the lock of {other}"),
        VerdictKind::Stuck if verdict.processes.len() > 1 => {
            format!("{other} still held {key} for {one} after {at}, past its time to live")
        }
        VerdictKind::Stuck => format!("{one} still waited for {key} after {at}"),
        VerdictKind::Unfair => format!("{one} was served before {other}, which had come first"),
        VerdictKind::TwoValid => format!("the leases of {one} and {other} were valid at once"),
        VerdictKind::Unheld => format!("{one} trusted a lease on {key}{NOWHERE}"),
        VerdictKind::Leaked => {
            format!("{other} still held {key} for {one} at {at}, after that acquisition had ended")
        }
        VerdictKind::Idle => format!("{key} was still free at {at} while {one} waited"),
        VerdictKind::AfterRelease => format!("{one} went on at {at} after its own release of {key}"),
        VerdictKind::TermRegressed => format!("{one} was shown an old leader of {key} at {at}"),
        VerdictKind::RanTwice => format!("{one} ran a task of {key} that {other} had done"),
        VerdictKind::Crowded => format!("{one} was let into the full queue of {key} at {at}"),
        VerdictKind::TaskLost => format!("a task of {key} was passed over at {at}"),
        VerdictKind::ComputedTwice => {
            format!("{one} computed a result of {key}, though {other} had stored one that it accepts")
        }
        VerdictKind::UnstoredResult => format!("{one} returned a result of {key} that was never stored"),
        VerdictKind::OldResult => format!("{one} returned an old result of {key}"),
    }
}
