//! Calls of `cargo sim` in crates that the tests make, without the network. They share a target folder, in
//! which tokio is compiled once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod command_line;
mod flags;
mod graphs;
mod interrupted;
mod refused;
mod support;
mod unchanged;
