//! tokio's interface in simulated processes, in one program: each further program is linked with the
//! simulation.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the tests call the simulated tokio")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod auto_traits;
mod files;
mod names;
mod pipes;
mod processes;
mod refused;
mod runtime;
mod runtimes;
mod signals;
mod tcp_sockets;
mod udp;
mod unix;
mod unix_sockets;
