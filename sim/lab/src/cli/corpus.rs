//! `corpus`: replays every schedule in a folder and prints a line for each.

use std::fmt::Write;
use std::path::Path;

use lab::Arm;
use lab::corpus;
use lab::museum::run;

use super::{Outcome, arm_name, print, wrap};

/// Width of the column of schedule names.
const NAME: usize = 30;

/// The problem with a schedule that demands no outcome: its replay shows nothing.
const EXPECTS_NOTHING: &str = "the schedule expects nothing: add [expect.unfenced] or [expect.fenced]";

/// Replays the schedules in `folder`. Returns false if one of them does not give the expected outcome, or
/// expects none.
pub(crate) fn corpus(folder: &Path) -> Outcome {
    let mut agreed = 0;
    let schedules = corpus::load(folder)?;
    for (name, schedule) in &schedules {
        let mut line = format!("{name:<NAME$}");
        let mut problems = Vec::new();
        for arm in Arm::of(&schedule.expect) {
            let report = run(schedule, arm, schedule.seed)?;
            let kinds: Vec<String> = report.kinds().iter().map(ToString::to_string).collect();
            let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
            let _ = write!(line, " {}: {kinds};", arm_name(arm).trim_start_matches("fencing "));
            let mismatches = schedule.mismatches(arm.name(), &report).unwrap_or_default();
            problems.extend(mismatches.iter().map(ToString::to_string));
        }
        if schedule.expect.is_empty() {
            problems.push(EXPECTS_NOTHING.to_owned());
        }
        agreed += usize::from(problems.is_empty());
        let line = line.trim_end_matches(';');
        let verdict = if problems.is_empty() { "ok  " } else { "FAIL" };
        print(&wrap(&format!("{verdict} {line}"), NAME + 6))?;
        for problem in problems {
            print(&wrap(&format!("     {problem}"), 7))?;
        }
    }
    print(&format!("{agreed} of {} schedules as expected\n", schedules.len()))?;
    Ok(agreed == schedules.len())
}
