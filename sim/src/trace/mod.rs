//! Runs as text for people: [`text`] writes a line for each event, [`side_by_side`] compares runs.

mod side;
pub mod text;

pub use side::side_by_side;
