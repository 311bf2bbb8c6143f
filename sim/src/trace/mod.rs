//! Runs for people and for other programs: [`text`] writes a line for each event, [`side_by_side`] compares
//! runs, [`message`] is what processes sent each other.

pub mod message;
mod side;
pub mod text;

pub use side::side_by_side;
