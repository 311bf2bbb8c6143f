//! What a live history comes to: its verdicts, its counts, and what it can't tell.

use std::fmt;
use std::time::Duration;

use resource::audit::{Event, Fairness, Kind, Nanos, Rules, Summary, Verdict, VerdictKind, audit};
use serde::Serialize;

/// What the event `server_stopped` says of a lock server that comes back without what it had acknowledged.
pub const DATA_LOST: &str = "killed, its data lost";

/// A history, judged.
#[derive(Debug, Serialize)]
pub struct Judgement {
    /// What was violated.
    pub verdicts: Vec<Verdict>,
    /// Who wrote and who was refused.
    pub summary: Summary,
    /// Order of arrival against order of grant.
    pub fairness: Fairness,
    /// How many events there are.
    pub events: usize,
    /// What could not be judged, and what is missing for it.
    pub not_judged: Vec<NotJudged>,
    /// The known limits of leases that the faults of this history went beyond.
    pub limits: Vec<Limit>,
}

/// From some time on, verdicts of a kind break no promise: a fault took away what the promise rests on.
#[derive(Debug, Serialize)]
pub struct Limit {
    /// Which kind.
    pub kind: VerdictKind,
    /// Since when.
    pub since: Nanos,
    /// What the fault took away.
    pub why: &'static str,
}

/// A kind of verdict that a history can't give.
#[derive(Debug, Serialize)]
pub struct NotJudged {
    /// Which.
    pub kind: VerdictKind,
    /// Why.
    pub why: &'static str,
}

impl Judgement {
    /// Judges `history`. With `fifo` also its order; with a bound also its progress, since the last fault healed.
    pub fn of(history: &[Event], fifo: bool, served_within: Option<Duration>) -> Self {
        let end = history.last().map_or(Nanos(0), |event| event.at);
        let healed_at = served_within.and(healed_at(history));
        let rules = Rules { fifo, end, healed_at, served_within, ..Rules::default() };
        Self {
            verdicts: audit(history, &rules),
            summary: Summary::of(history),
            fairness: Fairness::of(history),
            events: history.len(),
            not_judged: not_judged(history, &rules),
            limits: limits(history),
        }
    }

    /// Whether nothing was violated. An overlap is a finding and no violation, unless `strict`: any lease allows it
    /// when its holder is paused for longer than it lasts. So is what a fault explains.
    pub fn is_clean(&self, strict: bool) -> bool {
        let is_allowed =
            |verdict: &Verdict| verdict.kind == VerdictKind::Overlap || self.explanation(verdict).is_some();
        if strict { self.verdicts.is_empty() } else { self.verdicts.iter().all(is_allowed) }
    }

    /// Which fault explains the verdict, if one does. Nothing explains what the resource accepts: it has the fence.
    pub fn explanation(&self, verdict: &Verdict) -> Option<&'static str> {
        let reached = |limit: &&Limit| limit.kind == verdict.kind && limit.since <= verdict.at;
        self.limits.iter().find(reached).map(|limit| limit.why)
    }
}

/// When the last fault had healed: zero without faults, `None` while one lasts.
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

/// A counter that a server loses begins anew, or where a replica had it: tokens regress, and the resource refuses them.
fn limits(history: &[Event]) -> Vec<Limit> {
    let limit = |event: &Event| {
        let why = match &event.kind {
            Kind::ServerStopped { detail: Some(detail) } if detail.as_str() == DATA_LOST => {
                "a lock server had lost what it had acknowledged"
            }
            Kind::ServerPromoted { .. } => "a replica had taken over that may have lagged",
            _ => return None,
        };
        Some(Limit { kind: VerdictKind::TokenRegressed, since: event.at, why })
    };
    history.iter().filter_map(limit).collect()
}

/// A live history has what clients and the resource said. What only a lock server knows is not in it.
fn not_judged(history: &[Event], rules: &Rules) -> Vec<NotJudged> {
    let has = |wanted: fn(&Kind) -> bool| history.iter().any(|event| wanted(&event.kind));
    let server = has(|kind| matches!(kind, Kind::KeyGranted { .. }));
    let queued = has(|kind| matches!(kind, Kind::LeaseQueued { .. }));
    let reads = has(|kind| matches!(kind, Kind::ResourceRead { .. }));
    let resource = has(|kind| kind.name().target() == "resource");
    let sections = has(|kind| matches!(kind, Kind::SectionEntered { .. }));
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
            "give --served-within; and every fault must have healed",
        ),
        (!rules.fifo || !queued, VerdictKind::Unfair, "give --fifo, for a lock that queues"),
    ];
    reasons
        .into_iter()
        .filter(|(missing, ..)| *missing)
        .map(|(_, kind, why)| NotJudged { kind, why })
        .collect()
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verdicts, summary, fairness, events, not_judged, .. } = self;
        writeln!(
            f,
            "{events} events: {} grants, {} releases, {} renewals, {} writes accepted, {} refused, {} overtakings",
            summary.grants,
            summary.releases,
            summary.renewals,
            summary.accepted.len(),
            summary.refused.len(),
            fairness.inversions,
        )?;
        for verdict in verdicts {
            match self.explanation(verdict) {
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
