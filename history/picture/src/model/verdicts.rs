//! The violations of a picture, each at the event that broke the rule.

use super::{Mark, Violation};
use crate::run::{Finding, Run};

pub(super) fn violations(run: &Run<'_>, marks: &[Mark]) -> Vec<Violation> {
    let mark_of = |event: usize| marks.binary_search_by_key(&event, |mark| mark.number).ok();
    let violation = |finding: &Finding| Violation {
        kind: finding.verdict.kind,
        is_excused: finding.is_excused,
        sentence: finding.sentence.clone(),
        at: finding.verdict.at,
        mark: finding.verdict.event.and_then(mark_of),
        because: finding.verdict.because.iter().filter_map(|event| mark_of(*event)).collect(),
    };
    run.findings.iter().map(violation).collect()
}
