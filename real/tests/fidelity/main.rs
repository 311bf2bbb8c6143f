//! The simulated servers answer as the live ones do: random scripts of commands run against both, and every
//! answer is compared. A difference is shrunk to the shortest script that shows it.
//!
//! `SEED=7` draws other scripts, `SCRIPTS=10000` more of them. What is compared, what was found, and what is
//! not modelled: `docs/fidelity.md`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and waits for live servers in real time"
)]

mod etcd;
mod harness;
mod redis;
mod zookeeper;
