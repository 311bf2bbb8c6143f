//! Histories: the events of locks and resources, the audit of a history, and words for people.
//!
//! A [`History`] is the [`Event`]s of one run. [`EventName`], [`Kind`] and [`Record`] are made from one table
//! of all events, and so is [`emit!`], by which code emits those that are not a lock's own.
//!
//! The event of a fault has an [`Effect`], which programs read; its words are for people alone.
//!
//! [`audit`] judges a history by [`Rules`] and returns [`Verdict`]s; [`Summary`] and [`Fairness`] are counts.
//! The same code judges simulated and live runs, in one pass over the events and without a clock, so that one
//! history always gives the same verdicts. A verdict rests on evidence in the history. Without evidence (a
//! live run without the lock server's events, a writer that names no owner) there is no verdict.
//!
//! Events are collected as follows: a subscriber layer fills a [`Record`] (it is a `tracing` visitor) and
//! makes a [`Kind`] of it; in live runs the layer writes events with [`Event::write_json`], and
//! [`History::parse_json_lines`] reads them back. The recorder adds the true time and the process, which the
//! emitter can't know.
//!
//! [`text`] describes each event in words, [`rule()`] the rule behind a verdict; [`story`] sums a history up.

// The table of all events.
#[macro_use]
mod vocabulary;
// The judgement of a history.
mod audit;
// An event with its time and process, and the history that is made of such events.
mod events;
// A message between two processes.
mod message;
// Enums whose variants have names.
mod names;
// The rule behind a verdict, in words.
mod rule;
// Summaries of histories, also side by side.
pub mod story;
// Every event in words.
pub mod text;
// Lengths of time as text.
mod time;

pub use audit::{
    Acquisition, Belief, Beliefs, Fairness, Rules, Summary, Updates, Verdict, VerdictKind, WriteBy,
    WriteByError, audit,
};
pub use events::{Event, History, HistoryError, Nanos};
pub use message::{Fate, Message};
pub use names::UnknownName;
pub use rule::rule;
pub use time::{Span, SpanError, in_whole_units};
pub use vocabulary::{
    ClockFault, Effect, EventName, InstantFault, Kind, LinkFault, Name, Record, RecordError, RoleFault, Slot,
    TRUE_RATE,
};

// For the macro `emit!`.
#[doc(hidden)]
pub use tracing;
#[doc(hidden)]
pub use vocabulary::log_name;
