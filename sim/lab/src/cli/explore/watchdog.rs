//! Ends the program if a run has no end: a thread can't be stopped.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::follow::Following;

/// The longest time between two looks at the runs.
const LOOK: Duration = Duration::from_secs(1);

/// Calls `search`, and looks at the runs meanwhile. If one takes longer than `longest` in real time, saves
/// its schedule as a capsule and ends the program with 1.
pub(super) fn over<T>(following: &Following<'_>, longest: Duration, search: impl FnOnce() -> T) -> T {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let look = LOOK.min(longest / 4 + Duration::from_millis(1));
            while end.recv_timeout(look) == Err(RecvTimeoutError::Timeout) {
                if let Some(problem) = following.hang(longest) {
                    eprintln!("{problem}");
                    std::process::exit(1);
                }
            }
        });
        let found = search();
        drop(ended);
        found
    })
}
