//! Ctrl-C and SIGTERM, for commands that search.
//!
//! The first signal sets a flag. A search looks at it between two schedules, so that no run sees it; the
//! command then prints its report so far, keeps its files, and exits with [`EXIT_CODE`]. A second signal ends
//! the program at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code after a signal: 128 plus the number of SIGINT, as shells report it. SIGTERM gives the same.
pub(crate) const EXIT_CODE: u8 = 130;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Takes over both signals: the first one interrupts the command, the second one ends it. Call it before the
/// search.
///
/// # Errors
///
/// If the system does not allow it.
pub(crate) fn watch() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // The actions run in this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, EXIT_CODE.into(), Arc::clone(&INTERRUPTED))?;
        flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    Ok(())
}

/// Returns true once a signal has come: end the search, print the report so far and return. The program then
/// exits with [`EXIT_CODE`], whatever the command returns, unless that is an error.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
