//! The audit, verdict by verdict: histories that it must convict, and near misses that it must not.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod after_release;
mod because;
mod capacity;
mod conditional;
mod correct_histories;
mod counts;
mod deadlock;
mod foreign_release;
mod idle;
mod json_lines;
mod late_write;
mod leaked;
mod lost_update;
mod overlap;
mod stale_write;
mod story;
mod stuck;
mod tasks;
mod term_regressed;
mod token_regressed;
mod tracing_events;
mod two_valid;
mod unfair;
mod unheld;
mod verdict_names;
