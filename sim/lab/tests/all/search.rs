//! Searching: which violations are kept, and that a panic is one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use history::VerdictKind;
use sim::explore::{Broken, Found, KEPT_MAX, Portfolio, explore};
use sim::{NoOptions, Process, Sim};

/// Two processes that believe for 100 ms that they are alone, however long they are paused meanwhile.
pub(super) fn pair(sim: &mut Sim) {
    sim.check("one at a time", sim::no(VerdictKind::Overlap)).key("left");
    for (name, starts) in [("a", 0), ("b", 500)] {
        sim.process(name, move |process: Process| async move {
            process.sleep(Duration::from_millis(starts)).await;
            let section = process.section("left");
            process.sleep(Duration::from_millis(100)).await;
            drop(section);
        });
    }
}

/// The seeds of the kept violations, by cause.
fn seeds(found: &Found<NoOptions>) -> BTreeMap<String, Vec<u64>> {
    let mut seeds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for violation in &found.violations {
        seeds.entry(violation.cause.to_string()).or_default().push(violation.drawn_from);
    }
    seeds
}

#[test]
fn of_each_cause_the_first_violations_are_kept() {
    let all = explore(&[pair], 0..200, &Portfolio::of_seeds(), 1, |_| true).unwrap();
    let mut failing = Vec::new();
    for seed in 0..200 {
        let one = explore(&[pair], seed..seed + 1, &Portfolio::of_seeds(), 1, |_| true).unwrap();
        failing.extend(one.violations.iter().map(|violation| violation.drawn_from));
    }
    assert!(failing.len() > KEPT_MAX, "{failing:?}");
    assert_eq!(all.tally.violations, failing.len() as u64);
    assert_eq!(all.tally.causes.values().sum::<u64>(), all.tally.violations);
    // One schedule in 19 is run twice.
    assert_eq!((all.tally.schedules, all.tally.runs), (200, 200 + 11));
    let mut seen = all.tally.seen_first.iter().filter(|((_, kind), _)| *kind == VerdictKind::Overlap);
    assert_eq!(seen.next().map(|(_, seed)| seed), failing.first());
    assert_eq!(seeds(&all).into_values().collect::<Vec<_>>(), [&failing[..KEPT_MAX]]);
    let on_two_threads = explore(&[pair], 0..200, &Portfolio::of_seeds(), 2, |_| true).unwrap();
    assert_eq!(seeds(&on_two_threads), seeds(&all));
}

#[test]
fn a_panic_is_a_violation_and_the_search_goes_on() {
    let impatient = |sim: &mut Sim| {
        sim.process("a", |process: Process| async move {
            let began = process.now();
            process.sleep(Duration::from_millis(300)).await;
            assert!(process.now().saturating_since(began) < Duration::from_secs(1), "it slept too long");
        });
    };
    let found = explore(&[impatient], 0..200, &Portfolio::default(), 2, |_| true).unwrap();
    assert_eq!(found.tally.schedules, 200);
    let violation = found.violations.first().expect("a pause of a second");
    assert!(matches!(&violation.cause.broken, Broken::Panic(at) if at.contains("search.rs:")));
    assert!(violation.findings[0].contains("it slept too long"), "{:?}", violation.findings);
    assert!(violation.schedule.expect.is_empty(), "a panic has no outcome");
}

#[test]
fn a_world_that_cannot_be_built_ends_the_search() {
    let twins = |sim: &mut Sim| {
        for _ in 0..2 {
            sim.process("a", |_: Process| async {});
        }
    };
    let error = explore(&[twins], 0..5, &Portfolio::default(), 1, |_| true).unwrap_err().to_string();
    assert!(error.contains("two processes are called `a`"), "{error}");
}

#[test]
fn a_run_that_is_not_repeatable_ends_the_search() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let forgetful = |sim: &mut Sim| {
        sim.process("a", |process: Process| async move {
            process.point(&format!("run {}", RUNS.fetch_add(1, Ordering::Relaxed)));
        });
    };
    let error = explore(&[forgetful], 1..100, &Portfolio::default(), 1, |_| true).unwrap_err().to_string();
    assert!(error.starts_with("seed 19: a second run of the same schedule differs: event 1"), "{error}");
    let found = explore(&[forgetful], 1..19, &Portfolio::default(), 1, |_| true).unwrap();
    assert_eq!(found.tally.schedules, 18);
}
