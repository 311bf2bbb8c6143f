//! The tests of the simulator, as one program: a build links it once, and what the tests share is compiled once.
//!
//! Two are programs of their own, beside this folder. `seed`, for its name is in the README and in the lines that replay
//! a random schedule. `determinism_guard`, for it installs a metrics recorder, which a process has only one of, and
//! which puts events into every run.
//!
//! No test here may depend on something that the whole process shares, or change it.
#![allow(unreachable_pub, reason = "in a program `pub` only says that other modules use it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

mod etcd;
mod locks;
mod redis;
mod redlock;
mod zookeeper;

mod cas;
mod command;
mod comparison;
mod corpus;
mod determinism;
mod docs;
mod mutants;
mod schedule;
mod world;
