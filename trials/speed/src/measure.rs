//! The measurement: requests for a second of processor time.

use crate::{CUSTOMERS, REQUESTS};

/// The processor time of a measurement, in seconds.
const SECONDS: f64 = 2.0;

/// Runs `world` with new seeds for two seconds of processor time, after a run that is not measured, and
/// prints the requests a second with the name. `world` returns the number of requests that were answered.
pub fn measure(name: &str, mut world: impl FnMut(u64) -> usize) {
    let mut checked = |seed| assert_eq!(world(seed), CUSTOMERS * REQUESTS, "{name}: seed {seed}");
    checked(0);
    let (began, mut runs) = (processor_seconds(), 0);
    while processor_seconds() - began < SECONDS {
        runs += 1;
        checked(runs);
    }
    let rate = (runs as usize * CUSTOMERS * REQUESTS) as f64 / (processor_seconds() - began);
    println!("{rate:.0} {name}");
}

/// Returns the processor time of this program, in all its threads.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a variable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
