//! The long run, shortened, as one program.
//!
//! No test here may change the state of the process: the global subscriber, metrics recorder or environment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, and is the client or the server that it needs"
)]

mod postgres;
mod redis_etcd_zookeeper;
