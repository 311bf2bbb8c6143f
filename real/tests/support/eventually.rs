//! Waits for another process: polls a condition, and gives up after some 30 s.
#![allow(clippy::disallowed_methods, reason = "waits for other processes, in real time")]

use std::thread;
use std::time::Duration;

const TRIES: u32 = 6000;
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `look` until it returns a value, and returns that; fails the test after [`TRIES`] tries.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(PAUSE);
    }
    panic!("timed out waiting until {what}")
}
