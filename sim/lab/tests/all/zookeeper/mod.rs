//! The simulated ZooKeeper, and locks on it.

mod lab;
mod support;

mod backend;
mod backend_dropped;
mod backend_failure;
mod locks;
mod lost_reply;
mod nodes;
mod protocol;
mod sessions;
mod watches;
