//! The audit: judges what happened in a run, from its history alone.

mod history;
mod name;
mod record;
mod vocabulary;

pub use history::{Event, History, HistoryError, Nanos};
pub use name::Name;
pub use record::{Record, RecordError};
pub use vocabulary::{EventName, Kind};
