//! The error of a runtime that has been shut down.

use std::error::Error;
use std::io;

/// The words of tokio's own error.
const SHUT_DOWN: &str = "A Tokio 1.x context was found, but it is being shutdown.";

/// Returns true for the error of a runtime that has been shut down. A simulated runtime gives none: its
/// process dies with it.
pub fn is_rt_shutdown_err(err: &io::Error) -> bool {
    let is_meant =
        |inner: &(dyn Error + Send + Sync)| inner.source().is_none() && inner.to_string() == SHUT_DOWN;
    err.kind() == io::ErrorKind::Other && err.get_ref().is_some_and(is_meant)
}
