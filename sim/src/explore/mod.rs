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
pub use self::picture::{picture, pictured};
pub use cause::{Broken, Cause, Causes, Party};
pub use exercise::Exercised;
pub use exhaust::exhaust;
pub use explain::{Explained, Explanation, Range, SEEDS, explain, varied};
pub use harness::{Failure, Search, check};
pub use hunt::{Hunt, hunt, hunts};
pub use portfolio::Portfolio;
pub use repeat::difference;
pub use search::{Found, KEPT_MAX, Watch, explore, explore_watched};
pub use shrink::{RUNS_MAX, Shrunk, shrink};
pub use tally::Tally;
pub use vary::Part;
pub use violation::{Violation, violation};
