//! Measures the peak memory over a million runs. It must be low, and must not grow.

use std::time::Instant;

use lab::{Arm, Lab};
use sim::Strategy;
use sim::explore::{Portfolio, explore};

const RUNS: u64 = 1_000_000;

/// Runs a million random schedules with fencing on, on two threads, and prints the peak after each tenth.
pub(crate) fn million() {
    let began = Instant::now();
    let step = RUNS / 10;
    let uniform = Portfolio::only(Strategy::Uniform);
    for tenth in 0..10 {
        let first = tenth * step;
        explore(&[Lab::new(Arm::Fenced)], first..first + step, &uniform, 2, |_| true).unwrap();
        println!(
            "{:>9} runs, {:>6.1} s: peak {} MiB, now {} MiB",
            (tenth + 1) * step,
            began.elapsed().as_secs_f64(),
            status("VmHWM"),
            status("VmRSS")
        );
    }
}

/// Returns the value called `name` in the status of this process, in MiB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
