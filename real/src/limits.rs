//! Explains verdicts by faults: where a lock server loses acknowledged data, tokens may regress.
//!
//! Between two such losses they may not. The history is therefore cut at each loss, and no fault explains a
//! violation within a piece. An acquire that ran during a loss may have been granted before or after it: it
//! proves nothing.

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
    let broken = if losses.is_empty() { BTreeSet::new() } else { regressed_without_loss(history) };
    let explain = |verdict: &Verdict| {
        let (_, why) = losses.iter().rfind(|(at, _)| *at <= verdict.at)?;
        let is_broken =
            verdict.processes.first().is_some_and(|process| broken.contains(&(verdict.at, process.clone())));
        (verdict.kind == VerdictKind::TokenRegressed && !is_broken).then_some(*why)
    };
    verdicts.iter().map(explain).collect()
}

fn loss(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::ServerStopped { detail: Some(detail) } if detail.as_str() == DATA_LOST => Some(LOST),
        Kind::ServerPromoted { .. } => Some(LAGGED),
        _ => None,
    }
}

/// Returns the processes and times of tokens that regressed within a piece between two losses.
fn regressed_without_loss(history: &[Event]) -> BTreeSet<(Nanos, Name)> {
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
            _ => {}
        }
    }
    judge(&mut piece, &mut broken);
    broken
}

fn judge(piece: &mut Vec<Event>, broken: &mut BTreeSet<(Nanos, Name)>) {
    let verdicts = audit(piece, &Rules::default());
    let regressed = verdicts.into_iter().filter(|verdict| verdict.kind == VerdictKind::TokenRegressed);
    broken.extend(regressed.filter_map(|verdict| Some((verdict.at, verdict.processes.into_iter().next()?))));
    piece.clear();
}
