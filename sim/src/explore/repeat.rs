//! Second runs: a schedule must give the same events each time it is run.

use crate::sim::{self, Report, RunError, Schedule, Subject};

/// A search repeats one in this number of schedules: 5 %. It is prime, so that no strategy or shard that has
/// every n-th seed is left out.
const ONE_IN: u64 = 19;

/// Runs the schedule again and compares, if a search repeats the seed from which it was drawn. Returns true
/// if it did.
///
/// # Errors
///
/// [`RunError::Differs`] if the second run differs from `report`, or the error of that run.
pub(super) fn watch<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    seed: u64,
    report: &Report,
) -> Result<bool, RunError> {
    if !seed.is_multiple_of(ONE_IN) {
        return Ok(false);
    }
    let again = sim::run(subject, schedule)?;
    match difference(report, &again) {
        None => Ok(true),
        Some(difference) => {
            let cause = cause(subject, schedule);
            Err(RunError::Differs { seed, difference: format!("{difference}\n  {cause}") })
        }
    }
}

/// Names the cause of a difference between two runs of one schedule: runs in processes of their own begin
/// with the same statics, and differ only if they read something outside of the program.
pub(super) fn cause<S: Subject>(subject: &S, schedule: &Schedule<S::Options>) -> &'static str {
    let hash = || Some(sim::build(subject, schedule).ok()?.in_own_process().run().ok()?.hash);
    match (hash(), hash()) {
        (Some(one), Some(other)) if one == other && cfg!(unix) => {
            "in processes of their own the runs are equal: code in it changes a static, which the next run \
             finds changed. Let each run have a process of its own (Sim::in_own_process)"
        }
        _ => "code in it reads a clock, a random source or the order of a hash map",
    }
}

/// Describes the first event in which two runs of one schedule differ, if they do.
pub fn difference(one: &Report, other: &Report) -> Option<String> {
    if one.hash == other.hash {
        return None;
    }
    let (ours, theirs) = (one.trace(), other.trace());
    let mut lines = ours.lines().zip(theirs.lines()).enumerate();
    let first = lines.find(|(_, (ours, theirs))| ours != theirs);
    let problem = match first {
        Some((number, (ours, theirs))) => {
            format!("event {}: first\n    {ours}\n  then\n    {theirs}", number + 1)
        }
        None if one.events.len() == other.events.len() => {
            "the same events, at times that differ by less than 1 ms".to_owned()
        }
        None => format!("{} events first, then {}", one.events.len(), other.events.len()),
    };
    Some(format!("a second run of the same schedule differs: {problem}"))
}
