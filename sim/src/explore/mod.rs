//! Searches random schedules of a subject for verdicts that nothing explains.
//!
//! Some verdicts are known limits of a schedule's options and faults: [`Subject::excused`] returns them. Any
//! other verdict, any check that does not hold and any panic is a violation: a mistake of the lock, of the
//! resource or of the simulator.
//!
//! [`Subject::excused`]: crate::sim::Subject::excused

mod asking;
mod batch;
mod cause;
mod exercise;
pub mod exhaust;
mod explain;
mod explored;
mod feedback;
#[doc(hidden)]
pub mod fleet;
mod harness;
mod hunt;
mod kept;
mod nodes;
mod novelty;
mod page;
#[cfg(feature = "pages")]
mod picture;
mod portfolio;
mod repeat;
mod search;
mod sentence;
mod shrink;
mod tally;
mod trial;
mod vary;
mod violation;

#[cfg(feature = "pages")]
#[doc(hidden)]
pub use self::picture::{picture, pictured};
pub use cause::{Broken, Cause};
#[doc(hidden)]
pub use cause::{Causes, Party};
pub use exercise::Exercised;
pub use exhaust::exhaust;
#[doc(hidden)]
pub use explain::{Explained, Range, SEEDS, varied};
pub use explain::{Explanation, explain};
pub use harness::{Failure, Search, check};
#[doc(hidden)]
pub use hunt::{Hunt, hunt, hunts};
pub use portfolio::Portfolio;
#[doc(hidden)]
pub use repeat::difference;
#[doc(hidden)]
pub use search::KEPT_MAX;
pub use search::{Found, Watch, explore, explore_watched};
pub use shrink::{RUNS_MAX, Shrunk, shrink};
pub use tally::Tally;
#[doc(hidden)]
pub use vary::Part;
pub use violation::Violation;
#[doc(hidden)]
pub use violation::violation;
