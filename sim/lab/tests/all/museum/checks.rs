//! Mistakes that the fence hides are convicted with fencing on, by the checks of tokens and keys. A job is
//! lost with its worker, and not while that works.

use std::path::Path;

use ::history::VerdictKind as Verdict;
use lab::museum::{Museum, Mutant};
use lab::{Arm, Options};
use sim::{Report, Schedule, Span, Subject};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/museum/aimed");

fn schedule(mutant: Mutant) -> Schedule<Options> {
    lab::load(&Path::new(FOLDER).join(format!("{mutant}.toml"))).unwrap()
}

fn fenced(mutant: Option<Mutant>, schedule: &Schedule<Options>, seed: u64) -> Report {
    let museum = Museum::new(Arm::Fenced);
    let museum = mutant.map_or(museum.clone(), |mutant| museum.with(mutant));
    sim::sim::build(&museum, schedule).unwrap().with_seed(seed).run().unwrap()
}

#[test]
fn a_mistake_that_no_verdict_shows_is_found_behind_the_fence() {
    let hidden: Vec<_> = Mutant::ALL.iter().filter_map(|mutant| Some((*mutant, mutant.check()?))).collect();
    assert!(hidden.len() >= 7, "{hidden:?}");
    for (mutant, check) in hidden {
        let schedule = schedule(mutant);
        let excused = Museum::new(Arm::Fenced).excused(&schedule);
        let (mut convicted, seeds) = (0, 5);
        for seed in 0..seeds {
            let report = fenced(Some(mutant), &schedule, seed);
            assert!(report.kinds().is_subset(&excused), "{mutant}: no verdict shows it:\n{}", report.trace());
            convicted += usize::from(report.findings.iter().any(|finding| finding.check == check));
            let correct = fenced(None, &schedule, seed);
            assert_eq!(correct.findings, [], "the correct one:\n{}", correct.trace());
        }
        assert!(convicted >= 3, "{mutant}: convicted on {convicted} of {seeds} seeds");
    }
}

/// Returns whether a job is lost.
fn is_lost(mutant: Option<Mutant>, schedule: &Schedule<Options>) -> bool {
    fenced(mutant, schedule, schedule.seed).kinds().contains(&Verdict::TaskLost)
}

#[test]
fn a_popped_job_is_lost_with_its_worker_alone() {
    let mut schedule = schedule(Mutant::PopAndLose);
    assert!(is_lost(Some(Mutant::PopAndLose), &schedule));
    assert!(!is_lost(None, &schedule));

    // The second worker looks while the first one still works on the job, and nobody dies.
    schedule.faults.clear();
    schedule.options.workers[0].work = Span::from_secs(3);
    assert!(!is_lost(Some(Mutant::PopAndLose), &schedule));
}
