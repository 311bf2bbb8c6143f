//! The twins: each exhibit without its mistake breaks nothing.

use lab::Arm;
use lab::museum::{Museum, Mutant};
use sim::explore::{Portfolio, explore, violation};

use super::table;

/// The number of drawn schedules that each twin must bear on each of its systems.
const SCHEDULES: u64 = 12;

/// The twins that are more than the library's calls: those that send commands of their own bear more.
const OWN_CODE: [Mutant; 4] =
    [Mutant::SetnxThenPexpire, Mutant::BlindDel, Mutant::OldSessionNode, Mutant::LargestCount];

#[test]
fn twins_bear_the_schedules_aimed_at_their_mistakes() {
    for mutant in Mutant::ALL {
        let schedule = table::schedule(*mutant);
        let twin = Museum::new(Arm::Fenced).with(*mutant).twin();
        let report = sim::sim::run(&twin, &schedule).unwrap();
        let accused = violation(&twin, &schedule, &report).map(|accused| accused.cause.to_string());
        assert_eq!(accused, None, "{mutant} without its mistake:\n{}", report.trace());
    }
}

#[test]
fn twins_bear_drawn_schedules() {
    let mut accused = Vec::new();
    for mutant in Mutant::ALL {
        let schedules = if OWN_CODE.contains(mutant) { 25 * SCHEDULES } else { SCHEDULES };
        for system in mutant.systems() {
            let twin = Museum::new(Arm::Fenced).with(*mutant).drawing(system).twin();
            let found = explore(&[twin], 0..schedules, &Portfolio::default(), 2, |_| true).unwrap();
            let causes = found.violations.iter().map(|found| (found.drawn_from, found.cause.to_string()));
            accused.extend(causes.map(|cause| (mutant.name(), system, cause)));
        }
    }
    assert!(accused.is_empty(), "twins are accused: {accused:#?}");
}
