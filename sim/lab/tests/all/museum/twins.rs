//! The twins: each exhibit without its mistake breaks nothing.

use history::Kind;
use lab::museum::{Museum, Mutant};
use lab::{Arm, System, Worker, schedule};
use sim::Span;
use sim::explore::{Portfolio, explore, violation};

use super::table;
use crate::support::{Breadth, breadth};

/// Returns the number of drawn schedules that each twin must bear on each of its systems.
fn schedules() -> u64 {
    match breadth() {
        Breadth::Short => 1,
        Breadth::Usual => 4,
        Breadth::Whole => 12,
    }
}

/// The twins that are more than the library's calls: those that send commands of their own bear more.
const OWN_CODE: [Mutant; 5] = [
    Mutant::SetnxThenPexpire,
    Mutant::BlindDel,
    Mutant::OldSessionNode,
    Mutant::LargestCount,
    Mutant::Barging,
];

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
        let count = if OWN_CODE.contains(mutant) { 25 * schedules() } else { schedules() };
        for system in mutant.systems() {
            let twin = Museum::new(Arm::Fenced).with(*mutant).drawing(system).twin();
            let found = explore(&[twin], 0..count, &Portfolio::default(), 2, |_| true).unwrap();
            let causes = found.violations.iter().map(|found| (found.drawn_from, found.cause.to_string()));
            accused.extend(causes.map(|cause| (mutant.name(), system, cause)));
        }
    }
    assert!(accused.is_empty(), "twins are accused: {accused:#?}");
}

#[test]
fn a_place_apart_from_its_lock_ends_in_the_history() {
    let a = Worker { work: Span::from_secs(3), ..Worker::new("a") };
    let starts = Span::from_millis(500);
    let b = Worker { starts, deadline: Span::from_secs(1), ..Worker::new("b") };
    for system in [System::ETCD, System::ZOOKEEPER] {
        let schedule = schedule("A waiter gives up", system, Span::from_secs(4), vec![a.clone(), b.clone()]);
        let twin = Museum::new(Arm::Fenced).with(Mutant::Barging).twin();
        let report = sim::sim::run(&twin, &schedule).unwrap();
        let of_b = |owner: &history::Name| owner.as_str().starts_with("b:");
        let queued = report.events.iter().find_map(|event| match &event.kind {
            Kind::LeaseQueued { owner, position, .. } if of_b(owner) => Some(*position),
            _ => None,
        });
        let gone = report.events.iter().find_map(|event| match &event.kind {
            Kind::WaiterGone { owner, position, .. } if of_b(owner) => *position,
            _ => None,
        });
        assert!(queued.is_some() && queued == gone, "{system}: {queued:?}, {gone:?}\n{}", report.trace());
        assert_eq!(report.verdicts, [], "{system}");
    }
}
