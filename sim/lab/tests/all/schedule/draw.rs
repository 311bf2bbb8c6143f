//! Drawn schedules are valid, the same for the same seed, of every kind, and healed before the run ends.

use std::collections::BTreeSet;

use lab::{Arm, LabScene, System, draw, draw_class};
use sim::Span;
use sim::faults::{FAULTS, FaultKind, Faults, Trigger, Variant};

const SEEDS: u64 = 3000;

#[test]
fn a_drawn_schedule_is_valid_and_survives_a_round_trip() {
    for seed in (0..SEEDS).chain([u64::MAX, i64::MAX as u64 + 1]) {
        let schedule = draw(seed);
        lab::validate(&schedule)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", schedule.to_toml()));
        assert_eq!(lab::parse("drawn", &schedule.to_toml()).unwrap(), schedule, "seed {seed}");
    }
}

#[test]
fn a_seed_determines_the_drawn_schedule() {
    assert_eq!(draw(7), draw(7));
    let unlike: BTreeSet<String> = (0..100).map(|seed| draw(seed).to_toml()).collect();
    assert_eq!(unlike.len(), 100);
}

#[test]
fn every_fault_heals_before_the_run_ends() {
    for schedule in (0..SEEDS).map(draw) {
        for fault in &schedule.faults {
            let heals = fault
                .what
                .heals_after(&lab::LabScene(&schedule))
                .unwrap_or_else(|| panic!("{fault:?} lasts for ever"));
            assert!(fault.when.plus().plus(heals) < schedule.limit, "{fault:?} outlasts {}", schedule.limit);
        }
        assert!(schedule.options.within() < schedule.limit);
    }
}

#[test]
fn every_kind_of_fault_is_drawn_aimed_and_timed() {
    let schedules: Vec<_> = (0..SEEDS).map(draw).collect();
    let verbs: BTreeSet<_> =
        schedules.iter().flat_map(|s| &s.faults).map(|fault| fault.what.verb()).collect();
    let is_weighed = |kind: &FaultKind| {
        let weight = |variant: &&Variant| schedules.iter().any(|s| (variant.weight)(&LabScene(s)) > 0);
        kind.variants.iter().any(weight)
    };
    let mut drawn: BTreeSet<_> =
        FAULTS.iter().filter(|kind| is_weighed(kind)).map(|kind| kind.verb).collect();
    // The variant of `rate` draws these, too.
    drawn.extend(["step", "slew"]);
    assert_eq!(verbs, drawn);
    let timed = schedules.iter().flat_map(|s| &s.faults).filter(|fault| matches!(fault.when, Trigger::At(_)));
    let (timed, faults) = (timed.count(), schedules.iter().map(|s| s.faults.len()).sum::<usize>());
    assert!(timed > faults / 10 && timed < faults / 3, "{timed} of {faults} faults are timed");
    let counts: BTreeSet<_> = schedules.iter().map(|schedule| schedule.faults.len()).collect();
    assert_eq!(counts, BTreeSet::from([0, 1, 2, 3, 4]));
}

#[test]
fn workers_and_options_vary() {
    let schedules: Vec<_> = (0..SEEDS).map(draw).collect();
    let workers: BTreeSet<_> = schedules.iter().map(|schedule| schedule.options.workers.len()).collect();
    assert_eq!(workers, BTreeSet::from([2, 3, 4]));
    let ttls: BTreeSet<_> = schedules.iter().map(|schedule| schedule.options.ttl).collect();
    assert_eq!(ttls, BTreeSet::from([500, 1000, 2000, 3000, 4000].map(Span::from_millis)));
    let reads: BTreeSet<_> =
        schedules.iter().flat_map(|s| &s.options.workers).map(|worker| worker.read).collect();
    assert_eq!(reads.len(), 3);
    let systems: BTreeSet<_> = schedules.iter().map(|schedule| schedule.options.system).collect();
    assert_eq!(systems, System::searched().collect());
}

#[test]
fn both_arms_of_a_drawn_schedule_are_run() {
    assert_eq!(Arm::of(&draw(1).expect).count(), 2);
}

#[test]
fn a_class_of_faults_strikes_every_applicable_system() {
    for system in System::all() {
        for class in Faults::default().classes() {
            let drawn: Vec<_> = (0..40).filter_map(|seed| draw_class(system, class, seed)).collect();
            assert_eq!(drawn.len(), if system.has_class(class) { 40 } else { 0 }, "{class} on {system}");
            for schedule in drawn {
                assert_eq!(schedule.options.system, system);
                assert!(!schedule.faults.is_empty());
                lab::validate(&schedule).unwrap_or_else(|error| panic!("{error}:\n{}", schedule.to_toml()));
            }
        }
    }
}
