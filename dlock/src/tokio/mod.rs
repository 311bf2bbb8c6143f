//! The runtime of a program on tokio.

mod runtime;
mod stream;

pub use runtime::TokioRuntime;
pub use stream::TokioStream;
