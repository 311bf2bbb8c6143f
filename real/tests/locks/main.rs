//! The locks of `dlock` and what stands on them (semaphores, readers, elections, queues, crons, jobs), on
//! live servers, as one program: a program for each file would be linked for each.
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

mod blocking;
mod bounded;
mod connect;
mod cron;
mod cron_claim;
mod election;
mod examples;
mod flight;
mod job_queue;
mod jobs;
mod jobs_postgres;
mod loads;
mod primitives;
mod readers;
mod reentrant;
mod rights;
mod semaphore;
mod several;
mod shared_counter;
mod slow_clients;
mod valkey;
