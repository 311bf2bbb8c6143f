//! The runtime of a program on tokio.

mod connect;
mod runtime;
mod socket;
mod stream;

pub use runtime::TokioRuntime;
pub use stream::TokioStream;
