//! The fuzz targets for every parser that reads bytes from outside. `docs/fuzzing.md` says what each one
//! feeds and asserts, and how to run them.
//!
//! A target is a function from an input to nothing, which panics if the code under test breaks its promise.
//! `fuzz_targets/` gives it to libFuzzer; `tests/corpus.rs` runs it on the kept inputs in `corpus/`, without
//! libFuzzer.

// The targets.
pub mod capsule;
pub mod etcd_http2;
pub mod history;
pub mod lua_gate;
pub mod resource_http;
pub mod resp;
pub mod schedule;
pub mod url;
pub mod zookeeper;

// A client of a lock server whose answers are the fuzzer's.
mod client;
// The surroundings of a simulated server, and of a client.
pub mod machine;
// The memory that inputs take and leave.
pub mod memory;
// The reader of messages for traces.
mod messages;
// A byte stream in memory.
pub mod pipe;
// A simulated server in memory.
pub mod server;
// Tasks and a clock.
pub mod world;

/// A target.
pub type Target = fn(&[u8]);

/// All targets, by the names of their files and of their folders in `corpus/`.
pub const ALL: [(&str, Target); 9] = [
    ("capsule", capsule::run),
    ("etcd_http2", etcd_http2::run),
    ("history", history::run),
    ("lua_gate", lua_gate::run),
    ("resource_http", resource_http::run),
    ("resp", resp::run),
    ("schedule", schedule::run),
    ("url", url::run),
    ("zookeeper", zookeeper::run),
];

/// Runs a target on one input, and checks the memory that it takes.
pub fn run(target: Target, data: &[u8]) {
    memory::measured(|| target(data));
}
