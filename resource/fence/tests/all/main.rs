//! The fence rule, its answers over HTTP and its permits, in one program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod fence_rule;
#[cfg(all(feature = "axum", feature = "tokio-postgres"))]
mod http;
mod mutex;
mod next_step;
mod permits;
