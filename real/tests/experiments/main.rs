//! The experiments at a small size and the loads that they offer, on live servers, as one program.
//!
//! No test here may change the state of the process: the global subscriber, metrics recorder or environment.
#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, and is the client or the server that it needs"
)]

#[path = "../support/experiments.rs"]
mod support;

mod experiment;
mod load;
mod load_experiments;
