//! Tests of the whole library, in one program: each further program is linked with all clients. Those that
//! record events and spans are programs of their own: a subscriber of one thread sees what others begin.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod acquire;
mod bounded;
mod close;
mod election;
mod flight;
#[path = "../../doc/memory.rs"]
#[allow(dead_code, unreachable_pub)]
mod memory;
mod public_surface;
mod queue;
mod readers;
mod redis;
mod redis_batch;
mod redis_cleanup;
mod redis_native;
mod redis_release_batch;
mod reentrant;
mod release;
mod request;
#[path = "../../doc/results.rs"]
#[allow(dead_code, unreachable_pub)]
mod results;
mod several;
mod support;
mod threads;
mod tokio_runtime;
mod unfenced;
mod watchdog;
