//! The history of a live run: each process writes its own events, and the audit reads them in one order.
//!
//! [`Recorder`] is the `tracing` layer that writes one line for each event as it happens; [`read`] merges the
//! files of several processes. Times are those of the machine's monotonic clock, which all its processes
//! share.

mod read;
mod recorder;

pub use read::{Merged, ReadError, merge, read};
pub use recorder::{Recorder, Recording, speak_as};
