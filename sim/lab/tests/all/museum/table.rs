//! The table: each mutant is convicted on the schedule aimed at it, and the correct lock, worker and resource
//! give what that schedule demands.
//!
//! The schedules are those of the folder `aimed`, each under the name of its mutant, or of the corpus.

use std::path::Path;

use lab::museum::{Mutant, run_with};
use lab::{Arm, Options, run};
use sim::{Report, Schedule};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/museum/aimed");

/// How many seeds each schedule is run on: aimed, it needs no luck with most of them.
const SEEDS: u64 = 5;

#[test]
fn every_mutant_is_convicted_on_its_schedule_and_the_correct_is_acquitted() {
    let problems: Vec<_> = Mutant::ALL.iter().flat_map(|mutant| problems(*mutant)).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_mutant_has_its_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    for mutant in Mutant::ALL {
        assert!(root.join(mutant.file()).exists(), "{mutant}: {}", mutant.file());
        assert!(!mutant.systems().is_empty(), "{mutant} applies to no system");
    }
}

/// Returns the problems with the mutant's schedule.
fn problems(mutant: Mutant) -> Vec<String> {
    let schedule = schedule(mutant);
    let mut problems = Vec::new();
    let mut convicted = 0;
    for seed in 0..SEEDS {
        let mut is_convicted = false;
        for arm in Arm::of(&schedule.expect) {
            let correct = run(&schedule, arm, seed).unwrap();
            let demanded = schedule.expect.of(arm.name()).unwrap();
            let mismatches = demanded.mismatches(&correct);
            if !mismatches.is_empty() || correct.faults_struck() != schedule.faults.len() {
                problems.push(format!("{mutant}, {arm}, seed {seed}: the correct one: {mismatches:?}"));
            }
            is_convicted |=
                convicts(mutant, &schedule, arm, &run_with(&schedule, arm, seed, mutant).unwrap());
        }
        convicted += u64::from(is_convicted);
    }
    println!("{mutant}: convicted on {convicted} of {SEEDS} seeds");
    if convicted == 0 {
        problems.push(format!("{mutant} was not seen in {SEEDS} seeds of: {}", schedule.about));
    }
    problems
}

/// Returns true if the run has a verdict that convicts the mutant and that the correct one lacks. For a
/// mutant that no verdict convicts, returns true if the run differs from the schedule's expectations.
fn convicts(mutant: Mutant, schedule: &Schedule<Options>, arm: Arm, report: &Report) -> bool {
    let demanded = schedule.expect.of(arm.name()).unwrap();
    if mutant.shows().is_empty() {
        return !demanded.mismatches(report).is_empty();
    }
    let kinds = report.kinds();
    mutant.shows().iter().any(|shown| kinds.contains(shown) && !demanded.verdicts.contains(shown))
}

/// Returns the schedule that is aimed at the mutant.
pub(super) fn schedule(mutant: Mutant) -> Schedule<Options> {
    let known = match mutant {
        Mutant::NoCleanup => "ambiguous-acquire-given-up",
        Mutant::ForgetfulNodes => "redlock-crash-restart-always",
        Mutant::UncheckedWaiter => "etcd-waiter-lease-expired",
        Mutant::ForgetsOnRestart => "resource-restart",
        Mutant::LargestCount => "redlock-token",
        Mutant::AcceptsEqual => "ambiguous-put",
        Mutant::IgnoresVersion => "cas-high-contention",
        Mutant::UpgradeByWaiting => "readers-upgrade",
        _ => return lab::load(&Path::new(FOLDER).join(format!("{mutant}.toml"))).unwrap(),
    };
    crate::support::case(known).schedule.clone()
}
