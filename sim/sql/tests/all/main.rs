//! The engine's answers, waits, limits and log, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod driver;
mod limits;
mod log;
mod recorded;
mod waits;
