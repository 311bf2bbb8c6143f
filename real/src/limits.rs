//! Explains verdicts by faults: where a lock server loses acknowledged data, tokens may regress, and the jobs
//! of its queue may be lost.
//!
//! Between two such losses they may not. The history is therefore cut at each loss, and no fault explains a
//! violation within a piece. An acquire that ran during a loss may have been granted before or after it, and
//! a job that was added then stored before or after it: they prove nothing.

use std::collections::BTreeSet;

use history::{Event, Kind, Name, Nanos, Rules, Verdict, VerdictKind, audit};

/// The detail of the event `server_stopped` for a lock server that restarts without its acknowledged data.
pub const DATA_LOST: &str = "killed, its data lost";

const LOST: &str = "a lock server had lost what it had acknowledged";
const LAGGED: &str = "a replica had taken over that may have lagged";

/// Returns, for each of `verdicts`, the fault that explains it, if any. No fault explains a verdict on the
/// resource, since it checks the fence.
pub(crate) fn explain(history: &[Event], verdicts: &[Verdict]) -> Vec<Option<&'static str>> {
    let losses: Vec<_> = history.iter().filter_map(|event| Some((event.at, loss(&event.kind)?))).collect();
    let broken = if losses.is_empty() { BTreeSet::new() } else { broken_without_loss(history) };
    let explain = |verdict: &Verdict| {
        let (_, why) = losses.iter().rfind(|(at, _)| *at <= verdict.at)?;
        (can_explain(history, verdict) && !broken.contains(&place(verdict))).then_some(*why)
    };
    verdicts.iter().map(explain).collect()
}

/// The verdicts that a loss can explain.
const EXPLAINED: [VerdictKind; 2] = [VerdictKind::TokenRegressed, VerdictKind::TaskLost];

/// Returns true if a loss of a lock server's data can lead to the verdict. The ticks of a cron are kept by
/// the resource; only a queue keeps its tasks on the lock server, and says that none at all is left.
fn can_explain(history: &[Event], verdict: &Verdict) -> bool {
    let event = verdict.event.and_then(|event| history.get(event));
    let says_all = |event: &Event| matches!(event.kind, Kind::TasksPassed { task: u64::MAX, .. });
    match verdict.kind {
        VerdictKind::TokenRegressed => true,
        VerdictKind::TaskLost => event.is_some_and(says_all),
        _ => false,
    }
}

/// Identifies a verdict: its kind, time, process, and the lost task.
type Place = (VerdictKind, Nanos, Option<Name>, Option<String>);

fn place(verdict: &Verdict) -> Place {
    let task = (verdict.kind == VerdictKind::TaskLost).then(|| verdict.detail.clone());
    (verdict.kind, verdict.at, verdict.processes.first().cloned(), task)
}

fn loss(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::ServerStopped { detail: Some(detail) } if detail.as_str() == DATA_LOST => Some(LOST),
        Kind::ServerPromoted { .. } => Some(LAGGED),
        _ => None,
    }
}

/// Returns the verdicts on pieces between two losses.
fn broken_without_loss(history: &[Event]) -> BTreeSet<Place> {
    let mut piece = Vec::new();
    let mut broken = BTreeSet::new();
    let mut losing = BTreeSet::new();
    let mut asked = BTreeSet::new();
    for event in history {
        match &event.kind {
            kind if loss(kind).is_some() => {
                judge(&mut piece, &mut broken);
                asked.clear();
                losing.insert(&event.process);
            }
            Kind::ServerStarted { .. } => {
                losing.remove(&event.process);
            }
            Kind::LeaseRequested { owner, .. } | Kind::LeaseRetried { owner, .. } if losing.is_empty() => {
                asked.insert((owner, &event.process));
                piece.push(event.clone());
            }
            Kind::LeaseAcquired { owner, .. } | Kind::LeaseNotAcquired { owner, .. }
                if asked.contains(&(owner, &event.process)) =>
            {
                piece.push(event.clone());
            }
            Kind::TaskDue { .. } if !losing.is_empty() => {}
            kind if is_of_tasks(kind) => piece.push(event.clone()),
            _ => {}
        }
    }
    judge(&mut piece, &mut broken);
    broken
}

/// Returns whether the judge of tasks reads such an event.
fn is_of_tasks(kind: &Kind) -> bool {
    let name = kind.name().as_str();
    name.starts_with("task") || ["worker_step", "write_sent", "write_accepted"].contains(&name)
}

fn judge(piece: &mut Vec<Event>, broken: &mut BTreeSet<Place>) {
    let verdicts = audit(piece, &Rules::default());
    broken.extend(verdicts.iter().filter(|verdict| EXPLAINED.contains(&verdict.kind)).map(place));
    piece.clear();
}
