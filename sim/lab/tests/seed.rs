//! Random schedules keep every promise: with fencing on, no stale write is accepted; every verdict has an
//! explanation.
#![allow(unreachable_pub, reason = "in a program `pub` only says that other modules use it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

/// Parts of the program `all`.
mod all {
    pub mod support {
        pub mod replay;
        pub mod seeds;
    }
}

use all::support::replay::replay_line;
use all::support::seeds::seeds;
use history::VerdictKind;
use lab::{Arm, Lab, draw, run};
use sim::Subject;
use sim::explore::{Portfolio, violation};

#[test]
fn random_schedules_keep_every_promise() {
    let all = Portfolio::default();
    for seed in seeds(400) {
        let schedule = Lab::new(Arm::Fenced).schedule(&mut all.draw(seed)).unwrap();
        for arm in [Arm::Unfenced, Arm::Fenced] {
            let report = run(&schedule, arm, seed).unwrap();
            if let Some(violation) = violation(&Lab::new(arm), &schedule, &report) {
                panic!(
                    "{:?} with seed {seed}, {arm}\n\n{}\n{}\n{}",
                    violation.broken,
                    schedule.to_toml(),
                    report.trace(),
                    replay_line("seed", seed)
                );
            }
        }
    }
}

#[test]
fn without_fencing_the_search_finds_stale_writes() {
    // Without stale writes in these schedules the search above would prove nothing.
    let stale = (0..200).filter(|seed| {
        let report = run(&draw(*seed), Arm::Unfenced, *seed).unwrap();
        report.kinds().contains(&VerdictKind::StaleWrite)
    });
    assert!(stale.count() > 0);
}
