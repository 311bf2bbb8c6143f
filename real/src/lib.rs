//! The same locks on tokio and live servers: nothing of the protocols is written a second time here.
//!
//! [`TokioRuntime`] is the seam's other side: the operating system's clock, sockets, scheduler and random source.

mod runtime;

pub use runtime::TokioRuntime;
