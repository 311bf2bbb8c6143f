//! The history of a live run: each process writes its own events, and the audit reads them all in one order.
//!
//! [`Recorder`] is the `tracing` layer that writes, a line an event as it happens; [`read`] puts the files of several
//! processes together. The times are those of the machine's monotonic clock, which all its processes share.

mod read;
mod recorder;

pub use read::{ReadError, read};
pub use recorder::{Recorder, Recording, speak_as};
