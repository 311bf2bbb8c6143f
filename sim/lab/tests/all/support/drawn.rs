//! Runs of drawn schedules: correct workers break nothing, and mistakes are convicted.

use lab::museum::{Museum, Mutant};
use lab::{Arm, Lab, Options, run};
use sim::explore::violation;
use sim::{Report, Schedule, VerdictKind};

/// Runs the schedule with fencing; fails if anything is broken.
pub fn unbroken(schedule: &Schedule<Options>, seed: u64) -> Report {
    let report = run(schedule, Arm::Fenced, seed).unwrap();
    let broken = violation(&Lab::new(Arm::Fenced), schedule, &report).map(|found| found.broken);
    assert_eq!(broken, None, "{}, seed {seed}:\n{}", schedule.options.system, report.trace());
    report
}

/// Fails unless at least one of the schedules, each run with its number as the seed, convicts the mistake of
/// this, and none its correct twin.
pub fn convicted(mutant: Mutant, kind: VerdictKind, schedules: impl IntoIterator<Item = Schedule<Options>>) {
    let (mut mistaken, mut twin) = (0, 0);
    for (schedule, seed) in schedules.into_iter().zip(0..) {
        let [is_convicted, is_twin_convicted] = is_convicted(mutant, kind, &schedule, seed);
        mistaken += u64::from(is_convicted);
        twin += u64::from(is_twin_convicted);
    }
    assert!(mistaken > 0 && twin == 0, "{mutant}: {mistaken} times {kind}, its twin {twin} times");
}

/// Returns whether the schedule convicts the mistake of this, and whether it convicts the correct twin.
pub fn is_convicted(mutant: Mutant, kind: VerdictKind, schedule: &Schedule<Options>, seed: u64) -> [bool; 2] {
    let mistaken = Museum::new(Arm::Fenced).with(mutant);
    [mistaken.clone(), mistaken.twin()].map(|museum| {
        let report = sim::sim::build(&museum, schedule).unwrap().with_seed(seed).run().unwrap();
        violation(&museum, schedule, &report).is_some_and(|found| found.broken.contains(&kind))
    })
}
