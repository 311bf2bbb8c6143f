//! `tokio::signal`: the signals that the fault `terminate` sends to the simulated process. A process that has
//! not asked for a signal ends at once when it gets it.
//!
//! A process that has asked keeps its listener for the rest of its life, as with tokio: a second Ctrl-C does
//! not end it.

#[cfg(unix)]
pub mod unix;

use std::io;

/// Completes when the process gets SIGINT, as Ctrl-C sends. SIGTERM is another signal.
///
/// # Errors
///
/// None.
///
/// # Panics
///
/// Outside of a simulated process.
#[cfg(unix)]
pub async fn ctrl_c() -> io::Result<()> {
    unix::signal(unix::SignalKind::interrupt())?.recv().await;
    Ok(())
}
