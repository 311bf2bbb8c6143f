//! tokio's interface on the processes of a simulated world.
//!
//! `cargo sim` compiles a program with these sources in the place of tokio. Sockets, timers, tasks, files and
//! signals are those of the simulated process that calls; channels, the handles of tasks, the traits and
//! adapters of `io`, and the macros are those of the real tokio, which is `real_tokio` here.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is what code of a process calls in the place of the real tokio"
)]

#[cfg(feature = "rt")]
mod alive;
mod host;
#[cfg(feature = "rt")]
mod spawn;

#[cfg(feature = "fs")]
pub mod fs;
pub mod io;
#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "rt")]
pub mod runtime;
#[cfg(feature = "signal")]
pub mod signal;
#[cfg(feature = "sync")]
pub use real_tokio::sync;
pub mod task;
#[cfg(feature = "time")]
pub mod time;

pub use real_tokio::pin;
#[cfg(feature = "rt")]
pub use real_tokio::task_local;
#[cfg(feature = "macros")]
pub use real_tokio::{join, select, try_join};
#[cfg(all(feature = "macros", feature = "rt"))]
pub use real_tokio::{main, test};

/// As tokio's own, it is empty.
pub mod stream {}

#[cfg(feature = "rt")]
pub use self::task::spawn;

/// True: this is not the real tokio.
pub const IS_SIMULATED: bool = true;
