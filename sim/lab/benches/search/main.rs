//! Measures the search: runs a second on one core, and where their time goes.
//!
//! 1. Random schedules of each system, as `explore` runs them: drawn, run with fencing on, audited, hashed.
//! 2. All placements of one fault in the small workload of each system, as `exhaust` runs them.
//!
//! `cargo bench --bench search`. Rates count the processor time of this process, so other programs
//! disturb them less; medians of several measurements count.
//!
//! `cargo bench --bench search -- instructions` counts the instructions of a run instead, which do not
//! depend on the machine's speed. It needs `valgrind` on the `PATH`.
//!
//! `runs SYSTEM COUNT` runs schedules and nothing else, for a profiler, which says where the time goes:
//! `perf record --call-graph dwarf target/release/deps/search-… runs redis 1000`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark reads the clock"
)]

mod instructions;

use std::time::Duration;

use lab::{Arm, Lab, System, small};
use rustix::time::{ClockId, clock_gettime};
use sim::Strategy;
use sim::allocator::Allocator;
use sim::explore::exhaust::{Scope, exhaust};
use sim::explore::{Portfolio, explore};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Number of measurements of a rate.
const MEASUREMENTS: u64 = 15;
/// Number of schedules of one measurement: enough that the rare long ones are in each.
const SCHEDULES: u64 = 400;

fn main() {
    Allocator::keep_freed_memory();
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match arguments.next().as_deref() {
        None => rates(),
        Some("instructions") => count_instructions(),
        Some("runs") => {
            let [system, count] = [(); 2].map(|()| arguments.next().expect("runs SYSTEM COUNT"));
            search(system.parse().unwrap(), &Portfolio::default(), 0, count.parse().unwrap());
        }
        Some(other) => panic!("{other}: give nothing, or `instructions`"),
    }
}

/// Runs `count` random schedules of the system, from the seed `first` on, and returns their number.
fn search(system: System, portfolio: &Portfolio, first: u64, count: u64) -> u64 {
    let lab = Lab::new(Arm::Fenced).drawing(system);
    let found = explore(&[lab], first..first + count, portfolio, 1, |_| true).unwrap();
    assert_eq!(found.tally.violations, 0, "a correct lock is accused");
    found.tally.schedules
}

/// Runs all placements of one fault in the small workload, and returns their number.
fn placements(system: System) -> u64 {
    let found = exhaust(&Lab::new(Arm::Fenced), &small(system), &Scope::of(1), |_| true).unwrap();
    assert!(found.breaks.is_empty(), "a correct lock is accused");
    found.runs
}

fn rates() {
    println!("a second, fencing on, audit and trace hash included, one core; median of {MEASUREMENTS}:");
    println!(
        "{:<12}{:>20}{:>24}{:>22}",
        "", "uniform schedules", "of all strategies (*)", "small workload, K = 1"
    );
    let uniform = Portfolio::only(Strategy::Uniform);
    for system in System::of_locks() {
        let [uniform, all] = [&uniform, &Portfolio::default()].map(|portfolio| {
            let one = |number| rate(|| search(system, portfolio, number * SCHEDULES, SCHEDULES));
            median((0..MEASUREMENTS).map(one))
        });
        let small = median((0..MEASUREMENTS / 5).map(|_| rate(|| placements(system))));
        println!("{:<12}{uniform:>20.0}{all:>24.0}{small:>22.0}", system.name());
    }
    println!("(*) aimed and ordered schedules are run once without faults, to learn their points");
}

fn rate(work: impl Fn() -> u64) -> f64 {
    let began = elapsed(ClockId::ProcessCPUTime);
    let done = work();
    done as f64 / (elapsed(ClockId::ProcessCPUTime) - began).as_secs_f64()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn elapsed(clock: ClockId) -> Duration {
    let read = clock_gettime(clock);
    Duration::new(read.tv_sec as u64, read.tv_nsec as u32)
}

/// Prints the instructions of a random schedule of each system.
fn count_instructions() {
    println!("instructions of a random schedule, in thousands:");
    for system in System::of_locks() {
        let per_run = instructions::of_one(["runs", system.name()], [20, 120]);
        println!("{:<12}{:>10.0}", system.name(), per_run / 1e3);
    }
}
