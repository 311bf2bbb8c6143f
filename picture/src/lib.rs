//! Histories for people to read: [`text`] describes events in words.

pub mod text;
mod time;

pub use time::in_whole_units;
