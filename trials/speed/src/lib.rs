//! A booking service on axum, which holds a lock on Redis while it answers: the same code over the network of
//! two simulators, whose speeds are compared.

mod client;
mod measure;
pub mod net;
mod redis_server;
mod service;

pub use client::{customer, hyper_client};
pub use measure::measure;
pub use redis_server::redis_server;
pub use service::booking;

use std::time::Duration;

/// The latency of each link, one way.
pub const LATENCY: Duration = Duration::from_millis(2);

/// The number of customers, each of whom books a seat of its own.
pub const CUSTOMERS: usize = 4;

/// The number of requests of each customer.
pub const REQUESTS: usize = 50;
