//! Judges what happened: the events of locks and resources, the audit of a history, and words for people.
//!
//! Give [`audit`] the events of a run, and it returns a [`Verdict`] for each promise that the run broke, such
//! as a stale write, with the events that led there. The same code judges simulated and live runs, in one
//! pass over the events and without a clock, so that one history always gives the same verdicts. A verdict
//! rests on evidence in the history. Without evidence (a live run without the lock server's events, a writer
//! that names no owner) there is no verdict.
//!
//! # Example
//!
//! The resource accepts a late write, which loses the value of the newer holder:
//!
//! ```
//! use history::text::{Names, trace};
//! use history::{Event, Kind, Name, Nanos, Rules, VerdictKind, audit, rule};
//!
//! /// Returns the event in which the resource accepts a write of `owner`.
//! fn write(millis: u64, owner: &str, token: u64) -> Event {
//!     let key = Name::from(dlock::id_hash("orders:42").as_str());
//!     let owner = Some(Name::from(owner));
//!     let kind = Kind::WriteAccepted { key, owner, token, seq: None, version: 1, body: None };
//!     Event { at: Nanos(millis * 1_000_000), process: Name::from("resource"), kind }
//! }
//!
//! // While a is paused, its lease ends. b gets the lock and writes; then a wakes up and writes, too.
//! let history = [write(2_087, "b:28999649", 2), write(5_023, "a:7f3c9e12", 1)];
//! let trace = trace(&history, &Names::new(["orders:42"]));
//! assert_eq!(trace.lines().last(), Some("   5.023  resource    PUT orders:42 a token=1 → 200"));
//!
//! let verdicts = audit(&history, &Rules::default());
//! assert_eq!(verdicts.len(), 1);
//! assert_eq!(verdicts[0].kind, VerdictKind::StaleWrite);
//! assert_eq!(
//!     verdicts[0].to_string(),
//!     "stale_write at 5.023: the resource accepted the write of a (token 1) at 5.023, after that of b \
//!      (token 2) at 2.087"
//! );
//! println!("The broken rule: {}", rule(verdicts[0].kind));
//! ```
//!
//! # Map, in the order of reading
//!
//! 1. [`History`], [`Event`], [`Nanos`] and [`Name`]: a history is the events of one run, each with its true
//!    time and its process.
//! 2. [`Kind`]: every event with its fields. [`EventName`], [`Record`] and [`emit!`] are made from the same
//!    table of events; code emits with [`emit!`] the events that are not a lock's own. The event of a fault
//!    has an [`Effect`], which programs read; its words are for people alone.
//! 3. [`audit`]: judges a history by [`Rules`] and returns [`Verdict`]s of some [`VerdictKind`]. [`rule()`]
//!    is the rule behind a verdict, in words.
//! 4. [`Summary`], [`Updates`] and [`Fairness`]: the counts of a history. [`Beliefs`]: the leases that
//!    holders trust.
//! 5. [`text`]: each event in words, and the trace. [`story`]: a history in short lines, and several side by
//!    side.
//!
//! # How events are collected
//!
//! A subscriber layer fills a [`Record`] (it is a `tracing` visitor) and makes a [`Kind`] of it. In live runs
//! the layer writes events with [`Event::write_json`], and [`History::parse_json_lines`] reads them back. The
//! recorder adds the true time and the process, which the emitter can't know.

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
    Acquisition, Belief, Beliefs, Capacity, Fairness, Rules, Summary, Updates, Verdict, VerdictKind, WriteBy,
    WriteByError, audit,
};
pub use events::{Event, History, HistoryError, Nanos};
pub use message::{Fate, Message};
pub use names::UnknownName;
pub use rule::rule;
pub use time::{Span, SpanError, in_whole_units};
pub use vocabulary::{
    ClockFault, Effect, EventName, InstantFault, Kind, LinkFault, LookUpFault, Name, Record, RecordError,
    RoleFault, Slot, TRUE_RATE,
};

// For the macro `emit!`.
#[doc(hidden)]
pub use tracing;
#[doc(hidden)]
pub use vocabulary::log_name;
