//! Hunts: only the promise that is hunted ends one, and every run counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use history::VerdictKind;
use sim::explore::{Broken, Portfolio, hunt, hunts};
use sim::{Evidence, Process, Sim, Strategy};

use super::search::pair;

/// The pair, and a check that never holds.
fn restless(sim: &mut Sim) {
    sim.check("nothing", |_: &Evidence<'_>| Err("it never holds".to_owned()));
    pair(sim);
}

fn peaceful(sim: &mut Sim) {
    sim.process("a", |process: Process| async move { process.point("here") });
}

fn check(name: &str) -> Broken {
    Broken::Check(name.to_owned())
}

#[test]
fn a_hunt_goes_past_what_is_not_hunted() {
    let hunted = check("one at a time");
    let uniform = Portfolio::only(Strategy::Uniform);
    let hunt = hunt(&restless, std::slice::from_ref(&hunted), 0, 400, &uniform).unwrap();
    let (broken, violation) = hunt.found.expect("a pause of a second");
    assert_eq!((&broken, &violation.cause.broken), (&hunted, &hunted), "the cause is that of the hunt");
    assert!(violation.shows(&check("nothing")), "the run that ends it breaks the other promise, too");
    assert!(hunt.schedules > 1, "{}", hunt.schedules);
    assert_eq!(hunt.others, BTreeMap::from([(check("nothing"), hunt.schedules - 1)]));
}

#[test]
fn a_violation_shows_a_check_by_its_whole_name() {
    let uniform = Portfolio::only(Strategy::Uniform);
    let found = hunt(&restless, &[check("nothing")], 0, 1, &uniform).unwrap().found;
    let (_, violation) = found.expect("the check never holds");
    assert!(!violation.shows(&check("noth")));
    assert!(!violation.shows(&Broken::Verdict(VerdictKind::Stuck)));
}

#[test]
fn the_runs_of_a_hunt_are_all_that_it_made() {
    // Of 38 seeds, 2 are run twice. A strategy that aims runs each schedule once before.
    let runs = |strategy| {
        let hunt = hunt(&peaceful, &[check("x")], 0, 38, &Portfolio::only(strategy)).unwrap();
        assert!(hunt.found.is_none() && hunt.others.is_empty());
        (hunt.schedules, hunt.runs)
    };
    assert_eq!(runs(Strategy::Uniform), (38, 40));
    assert_eq!(runs(Strategy::Swarm), (38, 40));
    assert_eq!(runs(Strategy::Aimed), (38, 78));
    assert_eq!(runs(Strategy::Ordered), (38, 78));
    // It continues schedules once it knows some, which takes a run for each of them alone.
    let (_, feedback) = runs(Strategy::Feedback);
    assert!((40..=78).contains(&feedback), "{feedback}");
}

#[test]
fn a_hunt_that_is_cut_short_is_left_out() {
    let schedules = AtomicU64::new(0);
    // After the first schedule of the third hunt.
    let stop = || schedules.fetch_add(1, Ordering::Relaxed) >= 4;
    let uniform = Portfolio::only(Strategy::Uniform);
    let ended = hunts(&peaceful, &[check("x")], 3..9, 2, &uniform, 1, stop).unwrap();
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(|hunt| hunt.schedules == 2));
}
