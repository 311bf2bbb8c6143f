//! Advice on a lease: its TTL from measured work, and how often leases of that TTL would be lost.
//!
//! [`Measured`] is what a user has measured, [`Terms`] follow from it: both are arithmetic. [`section`] draws
//! the schedule of one critical section, and [`try_ttl`] runs many of them in the laboratory and counts. The
//! same input and first seed give the same counts on any number of threads.

mod measured;
mod section;
mod trial;
mod wilson;
mod work;

pub use measured::{Measured, MeasuredError, Terms};
pub use section::section;
pub use trial::{CRASHES, Trial, shows, try_ttl};
pub use wilson::wilson;
pub use work::{Work, WorkError};
