//! The tests of the simulator as one program, so a build links once and compiles the support modules once.
//!
//! Three programs are separate. `seed`: CONTRIBUTING.md and the replay lines of random schedules name it.
//! `determinism_guard`: it installs a global metrics recorder that adds events to every run of its process.
//! `museum_outside`: the museum's files name the crate's items from the root of a program.
//!
//! No test here may change the state of the process: the global subscriber, metrics recorder or environment.
#![allow(unreachable_pub, reason = "in a program `pub` only says that other modules use it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

mod etcd;
mod faults;
mod feedback;
mod fleet;
mod locks;
mod messages;
mod redis;
mod redlock;
mod zookeeper;

mod accusations;
mod advise;
mod bare_commands;
mod because;
mod bounded;
mod builder;
mod cas;
mod command;
mod comparison;
mod core_phase;
mod corpus;
mod cron;
mod crowds;
mod decide;
mod determinism;
mod docs;
mod election;
mod ends;
mod escapes;
mod exercise;
mod exhaust;
mod exhaustive;
mod explain;
mod gallery;
mod harness;
mod hosts;
mod hunts;
mod import_cycles;
mod init;
mod jobs;
mod kit;
mod limits;
mod lines;
mod marks;
mod museum;
mod outputs;
mod own_locks;
mod pages;
mod perfetto;
mod pictures;
mod probes;
mod public_items;
mod reader;
mod readers;
mod reentrant;
mod schedule;
mod scripts;
mod search;
mod seat_booking;
mod semaphore;
mod several;
mod shrink;
mod single_flight;
mod std_time;
mod strategies;
mod tls;
mod toy;
mod trace;
mod trials;
mod ttls;
mod unfenced;
mod upgrade;
mod world;
