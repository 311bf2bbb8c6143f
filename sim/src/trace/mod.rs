//! A run as a person reads it: [`text`] has a line an event, [`side_by_side`] compares two runs.

mod side;
pub mod text;

pub use side::side_by_side;
