//! Histories for people to read, from the simulator and from live runs.
//!
//! [`Run`] is what a picture is made from: a history, and what else is known of it. [`Picture`] is the
//! picture as data (`model/`). [`page`] and [`svg`] draw it (`layout`, `draw/`), [`terminal`] prints it.
//! [`text`] describes events in words.

mod draw;
mod layout;
mod model;
mod page;
mod rule;
mod run;
mod table;
mod terminal;
pub mod text;
mod time;

pub use draw::svg;
pub use model::{Arrow, Change, EVENTS_MAX, Edge, Lane, Mark, Picture, Shape, Span, SpanKind, Violation};
pub use page::page;
pub use rule::rule;
pub use run::{Fate, Finding, Message, Role, Run, Schedule};
pub use terminal::terminal;
pub use time::in_whole_units;
