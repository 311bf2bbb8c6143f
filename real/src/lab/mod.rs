//! Tools that the experiments, the long run and the comparison with other locks share: this program as
//! workers and resources (`actors`), the lock servers (`fleet`), an open load on them (`load`), links that
//! can be cut (`network`), parallel runs (`parallel`), the outcome of a run (`outcome`), its history as a
//! file (`histories`) and as text (`story`), `statistics`, the counts of the runs of a cell (`tally`) and of
//! the lock library (`counted`), the [`Machine`] and its [`Software`], the check that results are of
//! `one_machine`, and the files of results.

pub(crate) mod actors;
pub(crate) mod counted;
mod error;
mod files;
pub(crate) mod fleet;
mod histories;
pub(crate) mod load;
mod machine;
pub(crate) mod network;
mod one_machine;
pub(crate) mod outcome;
pub(crate) mod parallel;
mod software;
pub(crate) mod statistics;
pub(crate) mod story;
pub(crate) mod tally;

pub use self::files::{keep, keep_text, try_keep};
pub use error::LabError;
pub use histories::keep_histories;
pub(crate) use machine::LOAD_MAX;
pub use machine::Machine;
pub use one_machine::MeasuredError;
pub(crate) use one_machine::OneMachine;
pub use software::Software;
