//! Compares the simulated servers with live ones: runs random scripts of commands against both, and compares
//! every answer. A difference is shrunk to the shortest script that shows it.
//!
//! `SEED=7` draws other scripts, `SCRIPTS=10000` more of them. `docs/fidelity.md` lists what is compared, the
//! differences found, and the gaps of the simulation.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and waits for live servers in real time"
)]

mod etcd;
mod harness;
mod redis;
mod zookeeper;
