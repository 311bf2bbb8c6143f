//! The picture of a run, for the crate `picture` to draw.

use std::collections::BTreeMap;

use history::{Verdict, VerdictKind};
use picture::{Finding, Picture, Run};

use super::sentence::of_verdict;
use crate::sim::{self, Report, RunError, Schedule, Subject};

/// Runs the schedule with its messages recorded, and makes the picture of the run.
///
/// # Errors
///
/// [`RunError`] if the schedule can't be built, or if code in it panics.
pub fn pictured<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    title: &str,
) -> Result<Picture, RunError> {
    let mut world = sim::build(subject, schedule)?;
    world.record_messages();
    Ok(picture(subject, schedule, &world.run()?, title))
}

/// Makes the picture of a run of the schedule. `title` distinguishes the run from others. The picture has
/// messages if the run has recorded them.
pub fn picture<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    report: &Report,
    title: &str,
) -> Picture {
    let excused = subject.excused(schedule);
    let finding = |verdict: &Verdict| Finding {
        sentence: of_verdict(schedule, verdict, report),
        is_excused: excused.contains(&verdict.kind),
        verdict: verdict.clone(),
    };
    let mut findings: Vec<Finding> = report.verdicts.iter().map(finding).collect();
    // Overlaps come last: any lease allows them, and the other verdicts say what harm they did.
    findings.sort_by_key(|finding| (finding.is_excused, finding.verdict.kind == VerdictKind::Overlap));
    Picture::of(&Run {
        title,
        about: &schedule.about,
        events: &report.events,
        names: &report.names,
        findings: &findings,
        messages: &report.messages,
        roles: &BTreeMap::new(),
    })
}
