//! The feedback strategy: it reaches what needs one step after the other, the same on any number of threads.

use std::time::Duration;

use sim::explore::{Found, Portfolio, Tally, explore};
use sim::{NoOptions, Process, Sim, Strategy};

/// The number of rounds that must be slow.
const SLOW: u32 = 4;

/// A process that panics once four of its rounds were slow: one pause for each.
fn slow_four_times(sim: &mut Sim) {
    sim.process("a", |process: Process| async move {
        let mut slow = 0;
        for _ in 0..12 {
            let began = process.now();
            process.sleep(Duration::from_millis(500)).await;
            if process.now().saturating_since(began) < Duration::from_millis(800) {
                process.point("quick");
            } else {
                slow += 1;
                process.point(&format!("slow {slow}"));
            }
            assert!(slow < SLOW, "{SLOW} rounds were slow");
        }
    });
}

fn search(strategy: Strategy, seeds: u64, threads: usize) -> Found<NoOptions> {
    let portfolio = Portfolio::only(strategy);
    let go_on = |tally: &Tally| tally.violations == 0;
    explore(&[slow_four_times], 0..seeds, &portfolio, threads, go_on).unwrap()
}

#[test]
fn feedback_finds_a_mistake_behind_several_steps_with_fewer_schedules() {
    let guided = search(Strategy::Feedback, 6_000, 2);
    assert_eq!(guided.tally.violations, 1, "not found in {} schedules", guided.tally.schedules);
    let uniform = search(Strategy::Uniform, 4 * guided.tally.schedules, 2);
    assert_eq!(uniform.tally.violations, 0, "{} against {}", guided.tally.schedules, uniform.tally.schedules);
}

#[test]
fn a_guided_search_is_the_same_on_any_number_of_threads() {
    let run = |threads| {
        let portfolio = Portfolio::only(Strategy::Feedback);
        let found = explore(&[slow_four_times], 0..600, &portfolio, threads, |_| true).unwrap();
        let violations = found.violations.iter();
        let violations: Vec<_> =
            violations.map(|violation| (violation.drawn_from, violation.schedule.to_toml())).collect();
        (found.tally.states, found.tally.growth, found.tally.faults, violations)
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn a_found_schedule_replays_by_itself() {
    let found = search(Strategy::Feedback, 6_000, 1);
    let schedule = &found.violations.first().expect("a violation").schedule;
    assert!(!schedule.rekey.is_empty(), "{}", schedule.to_toml());
    let read = sim::sim::parse(&slow_four_times, "found", &schedule.to_toml()).unwrap();
    assert!(sim::sim::run(&slow_four_times, &read).unwrap_err().to_string().contains("rounds were slow"));
}

#[test]
fn a_search_is_stable_once_nothing_new_comes() {
    let still = |sim: &mut Sim| {
        sim.process("a", |process: Process| async move { process.point("begins") });
    };
    let go_on = |tally: &Tally| !tally.is_stable();
    let found = explore(&[still], 0..100_000, &Portfolio::default(), 2, go_on).unwrap();
    let Tally { schedules, quiet_batches, .. } = found.tally;
    assert_eq!(quiet_batches, 10);
    assert!(schedules.is_multiple_of(64) && (704..100_000).contains(&schedules), "{schedules}");
}

#[test]
fn workers_that_change_places_reach_the_same_states() {
    let states = |first: &'static str, second: &'static str| {
        let two = move |sim: &mut Sim| {
            for (name, starts) in [(first, 0), (second, 50)] {
                sim.process(name, move |process: Process| async move {
                    process.sleep(Duration::from_millis(starts)).await;
                    let section = process.section("key");
                    process.sleep(Duration::from_millis(100)).await;
                    drop(section);
                });
            }
        };
        let faultless = explore(&[two], 0..1, &Portfolio::default(), 1, |_| true).unwrap();
        faultless.tally.states
    };
    assert_eq!(states("a", "b"), states("b", "a"));
    assert!(states("a", "b") > 2);
}
