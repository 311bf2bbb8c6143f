//! The simulated etcd, with the real client, and locks on it.

mod lab;
mod support;

mod backend;
mod backend_determinism;
mod backend_failure;
mod backend_service;
mod batches;
mod determinism;
mod kv;
mod lease;
mod lock;
mod members;
mod watch;
