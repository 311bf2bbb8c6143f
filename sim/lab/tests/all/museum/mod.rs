//! Every mistake is found: each mutant is convicted, and the correct lock and resource are acquitted on the
//! same schedules.
//!
//! `table.rs` runs each mutant on the schedule aimed at it. `hunts.rs` has further ways for some: by the
//! explorer's own rule on a schedule drawn at random ([`Hunt::Drawn`]), by an overlap on a drawn schedule in
//! which nothing excuses one ([`Hunt::CutOff`]), or by other schedules of the corpus ([`Hunt::Aimed`]).

mod checks;
mod hunts;
mod kept;
mod locks;
mod pages;
mod resource;
mod table;
mod twins;

use std::collections::BTreeSet;

use ::history::VerdictKind as Verdict;
use hunts::{Hunt, hunts};
use lab::museum::{Mutant, run_with};
use lab::{Arm, Lab, Options, System, draw_for, run};
use sim::explore::violation;
use sim::{Report, Schedule};

use crate::support::SEARCH_FACTOR;

/// Convicts `mutant` by each of its hunts; panics if one fails.
fn convict(mutant: Mutant) {
    for hunt in hunts(mutant) {
        match hunt {
            Hunt::Drawn { shows, seeds } => convict_drawn(mutant, shows, seeds),
            Hunt::CutOff { seeds } => convict_cut_off(mutant, seeds),
            Hunt::Aimed { schedule, arm, shows, seeds } => {
                convict_aimed(mutant, &schedule, arm, shows, seeds);
            }
        }
    }
}

fn convict_drawn(mutant: Mutant, shows: Verdict, seeds: u64) {
    for seed in crate::support::search(seeds) {
        let schedule = draw_for(System::REDIS, seed);
        for arm in [Arm::Unfenced, Arm::Fenced] {
            let report = run_with(&schedule, arm, seed, mutant).unwrap();
            let Some(violation) = violation(&Lab::new(arm), &schedule, &report) else { continue };
            if !violation.broken.contains(&shows) {
                continue;
            }
            acquit(&schedule, arm, seed);
            return print_conviction(mutant, &violation.broken, arm, seed, &report);
        }
    }
    panic!("{mutant} was not convicted in {} schedules", SEARCH_FACTOR * seeds);
}

fn convict_cut_off(mutant: Mutant, seeds: u64) {
    for seed in crate::support::search(seeds) {
        let schedule = crate::support::cut_off_while_working(draw_for(System::REDIS, seed));
        let report = run_with(&schedule, Arm::Fenced, seed, mutant).unwrap();
        if report.kinds().contains(&Verdict::Overlap) {
            let correct = run(&schedule, Arm::Fenced, seed).unwrap();
            assert!(!correct.kinds().contains(&Verdict::Overlap), "the correct one:\n{}", correct.trace());
            return print_conviction(mutant, &BTreeSet::from([Verdict::Overlap]), Arm::Fenced, seed, &report);
        }
    }
    panic!("{mutant} was not convicted in {} schedules", SEARCH_FACTOR * seeds);
}

/// Asserts that the correct lock and resource break no promise on the same schedule.
fn acquit(schedule: &Schedule<Options>, arm: Arm, seed: u64) {
    let correct = run(schedule, arm, seed).unwrap();
    let broken = violation(&Lab::new(arm), schedule, &correct).map(|violation| violation.broken);
    assert_eq!(broken, None, "the correct one, on seed {seed}, {arm}:\n{}", correct.trace());
}

fn convict_aimed(mutant: Mutant, schedule: &Schedule<Options>, arm: Arm, shows: Verdict, seeds: u64) {
    let demanded = schedule.expect.of(arm.name()).unwrap();
    assert!(!demanded.verdicts.contains(&shows));
    let mut found = None;
    // An aimed schedule needs no luck, so the number of seeds is not multiplied here.
    for seed in 0..seeds {
        let correct = run(schedule, arm, seed).unwrap();
        assert_eq!(
            correct.faults_struck(),
            schedule.faults.len(),
            "{mutant}, seed {seed}:\n{}",
            correct.trace()
        );
        assert_eq!(
            demanded.mismatches(&correct),
            [],
            "the correct one, {mutant}, seed {seed}:\n{}",
            correct.trace()
        );
        let report = run_with(schedule, arm, seed, mutant).unwrap();
        if found.is_none() && report.kinds().contains(&shows) {
            found = Some(seed);
            print_conviction(mutant, &BTreeSet::from([shows]), arm, seed, &report);
        }
    }
    assert!(found.is_some(), "{mutant} was not convicted in {seeds} seeds of: {}", schedule.about);
}

fn print_conviction(mutant: Mutant, broken: &BTreeSet<Verdict>, arm: Arm, seed: u64, report: &Report) {
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    println!("{mutant}: {} on seed {seed}, {arm}", broken.join(", "));
    if let Some(verdict) = report.verdicts.iter().find(|verdict| broken.contains(&verdict.kind.to_string())) {
        println!("  {}", verdict.detail);
    }
    // The harness names the thread after the test.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    println!("  {}", crate::support::replay_line(&format!("all {test} -- --nocapture"), seed));
}
