//! The vocabulary of events: one table of all events of a history, used both to emit and to read them.
//!
//! The table's rows of `dlock` come from [`dlock::lease_events`]; all others are in `table.rs`. The table
//! generates [`EventName`] (the names), [`Kind`] (an event with its fields) and `emit!` (a `tracing` call for
//! a row). [`Record`] has a place for each field that any event may have.

#[macro_use]
mod table;

mod effect;
mod emit;
mod event_name;
mod key;
mod kind;
mod name;
mod record;

pub use effect::{ClockFault, Effect, InstantFault, LinkFault, LookUpFault, RoleFault, TRUE_RATE};
pub use event_name::EventName;
pub use kind::Kind;
pub use name::Name;
pub use record::{Record, RecordError, Slot, log_name};
