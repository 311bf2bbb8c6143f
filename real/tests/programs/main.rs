//! The commands of `real`, as a shell runs them: what they print, write and leave behind, as one program.
//!
//! No test here may change the state of the process: the global subscriber, metrics recorder or environment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and is the client or the server that it needs"
)]

#[path = "../../../dlock/runtime/tests/support/certificates.rs"]
mod certificates;
#[path = "../support/eventually.rs"]
mod eventually;
#[path = "../support/holders.rs"]
mod holders;
#[path = "../support/promql.rs"]
mod promql;

mod audit;
mod command;
mod compose;
mod ends;
mod etcd_restore;
mod exports;
mod fill;
mod limits;
mod logs;
mod observability;
mod operator_access;
mod outputs;
mod peers;
mod report;
mod runbook;
mod servers;
