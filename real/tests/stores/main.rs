//! The stores of the resource and the check of the fence in a transaction, on live servers, with crashes and
//! lost connections, as one program.
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
#[path = "../support/example.rs"]
mod example;
#[path = "../support/fence_clients.rs"]
mod fence_clients;
#[path = "../support/relay.rs"]
mod relay;

mod fence_check;
mod fence_crash;
mod fence_examples;
mod fence_mysql;
mod fence_refund;
mod postgres;
mod proxy;
mod resource_guards;
mod resource_tls;
mod shared_stores;
mod task_crash;
