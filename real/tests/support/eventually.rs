//! Waiting for another process: not for a certain time, but neither for ever.
#![allow(clippy::disallowed_methods, reason = "waits for other processes, in real time")]

use std::thread;
use std::time::Duration;

const TRIES: u32 = 6000;
const PAUSE: Duration = Duration::from_millis(5);

/// Looks until there is something, and fails the test if there never is.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(PAUSE);
    }
    panic!("it never came about that {what}")
}
