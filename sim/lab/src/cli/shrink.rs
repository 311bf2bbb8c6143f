//! `shrink` and `explain`: the schedule in a file, reduced to what its failure needs, and explained.

use std::error::Error;
use std::path::Path;

use history::VerdictKind;
use lab::museum::{self, Museum};
use lab::{Arm, Options};
use sim::Schedule;
use sim::explore::{Broken, Cause, Causes, RUNS_MAX};

use super::picture::{Pictures, try_files};
use super::{Outcome, arm_name, print, wrap, wrap_lines, written};

/// A schedule that fails in one arm.
struct Failing {
    arm: Arm,
    subject: Museum,
    schedule: Schedule<Options>,
    cause: Cause,
}

/// Shrinks the schedule in `file`, and writes it to `out`, or prints it.
pub(crate) fn shrink(
    file: &Path,
    verdict: Option<VerdictKind>,
    out: Option<&Path>,
    pictures: &Pictures,
) -> Outcome {
    let outputs: Vec<_> = out.iter().map(|out| out.to_path_buf()).chain(pictures.files()).collect();
    try_files(&outputs, Some(file))?;
    let Failing { arm, subject, schedule, cause } = load(file, verdict)?;
    let shrunk = sim::explore::shrink(&subject, &schedule, &cause, RUNS_MAX);
    let text = shrunk.schedule.to_toml();
    if let Some(out) = out {
        files::write(out, &text)?;
        written(out);
    }
    if pictures.is_wanted() {
        let drawn = sim::explore::pictured(&subject, &shrunk.schedule, arm_name(arm))?;
        pictures.write(&[drawn], &format!("{}, shrunk", file.display()), &text)?;
    }
    let (faults, left) = (schedule.faults.len(), shrunk.schedule.faults.len());
    let stopped = if shrunk.is_smallest { "" } else { ", where it stopped before its end" };
    let head = wrap(&format!("{}: {cause}", arm_name(arm)), 2);
    print(&format!("{head}{left} of {faults} faults left after {} runs{stopped}\n\n{text}", shrunk.runs))?;
    Ok(true)
}

/// Explains the schedule in `file`.
pub(crate) fn explain(file: &Path, verdict: Option<VerdictKind>) -> Outcome {
    let Failing { arm, subject, schedule, cause } = load(file, verdict)?;
    let explanation = sim::explore::explain(&subject, &schedule, &cause);
    let explanation = explanation.ok_or("a second run of the schedule does not fail")?;
    print(&format!("{}\n{}", arm_name(arm), wrap_lines(&explanation.to_string())))?;
    Ok(true)
}

/// Loads the schedule, and finds the arm in which it fails: with the cause that its `about` names if it names
/// one, or else with a violation if there is one, or with a verdict that the schedule explains itself.
/// `verdict` says which one is meant, if it has several.
fn load(file: &Path, verdict: Option<VerdictKind>) -> Result<Failing, Box<dyn Error>> {
    let schedule = museum::load(file)?;
    let is_meant = |cause: &Cause| verdict.is_none_or(|kind| cause.broken == Broken::Verdict(kind));
    let (mut violations, mut excused) = (Vec::new(), Vec::new());
    for arm in Arm::of(&schedule.expect) {
        let subject = Museum::new(arm);
        let causes = Causes::of(&subject, &schedule, &sim::sim::run(&subject, &schedule));
        violations.extend(causes.violations.into_iter().map(|cause| (arm, cause)));
        // In reverse order: the verdicts that follow from others come last.
        excused.extend(causes.excused.into_iter().rev().map(|cause| (arm, cause)));
    }
    let mut found: Vec<_> = violations.into_iter().chain(excused).collect();
    found.retain(|(_, cause)| is_meant(cause));
    let named = found.iter().position(|(_, cause)| cause.is_named_in(&schedule.about));
    let Some((arm, cause)) = found.into_iter().nth(named.unwrap_or(0)) else {
        let meant = verdict.map_or_else(|| "verdict".to_owned(), |kind| kind.to_string());
        return Err(format!("{}: its run gives no {meant}: nothing fails", file.display()).into());
    };
    Ok(Failing { arm, subject: Museum::new(arm), schedule, cause })
}
