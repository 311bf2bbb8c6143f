//! The violations of a picture, each at the event that broke the rule.

use history::{Event, Kind, Verdict, VerdictKind};

use super::key::key_of;
use super::{Mark, Violation};
use crate::run::Run;

pub(super) fn violations(run: &Run<'_>, marks: &[Mark]) -> Vec<Violation> {
    let violation = |finding: &crate::run::Finding| {
        let number = wrong(&finding.verdict, run.events);
        Violation {
            kind: finding.verdict.kind,
            is_excused: finding.is_excused,
            sentence: finding.sentence.clone(),
            at: finding.verdict.at,
            mark: number.and_then(|number| marks.binary_search_by_key(&number, |mark| mark.number).ok()),
        }
    };
    run.findings.iter().map(violation).collect()
}

/// Returns the number of the event at which the rule was broken; `None` if the verdict is that something
/// never happened.
fn wrong(verdict: &Verdict, events: &[Event]) -> Option<usize> {
    let from = events.partition_point(|event| event.at < verdict.at);
    let to = events.partition_point(|event| event.at <= verdict.at);
    let find = |is_meant: &dyn Fn(&Event) -> bool| (from..to).find(|at| is_meant(&events[*at]));
    find(&|event| is_wrong(verdict, event)).or_else(|| {
        find(&|event| verdict.processes.contains(&event.process) && is_about(verdict, &event.kind))
    })
}

fn is_wrong(verdict: &Verdict, event: &Event) -> bool {
    use VerdictKind::{LateWrite, LostUpdate, Overlap, StaleWrite};
    let is_party = verdict.processes.contains(&event.process);
    is_about(verdict, &event.kind)
        && match &event.kind {
            Kind::SectionEntered { .. } => verdict.kind == Overlap && is_party,
            Kind::WriteAccepted { .. } | Kind::ConditionalAccepted { .. } => {
                [StaleWrite, LateWrite, LostUpdate].contains(&verdict.kind)
            }
            Kind::KeyDeleted { client, .. } | Kind::KeyExtended { client, .. } => {
                verdict.kind == VerdictKind::ForeignRelease && verdict.processes.contains(client)
            }
            _ => false,
        }
}

fn is_about(verdict: &Verdict, kind: &Kind) -> bool {
    let key = key_of(kind);
    key == Some(&verdict.key)
}
