// The surroundings of the examples in this crate's documentation: a lock on a server in memory.

mod memory {
    include!("memory.rs");
}

use std::error::Error;
use std::time::Duration;

use dlock::{Lock, LockKey, Options, TokioRuntime};
pub use memory::Memory;
use tokio::runtime::{Builder, Handle};

/// Runs an example with a lock whose leases live for 2 s, its runtime and a key.
pub fn run<F>(example: F)
where
    F: AsyncFnOnce(Lock<Memory<TokioRuntime>>, TokioRuntime, LockKey) -> Result<(), Box<dyn Error>>,
{
    let tokio = Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        let lock = Lock::new(Memory::new(runtime.clone()), Options::new(Duration::from_secs(2)))?;
        example(lock, runtime, LockKey::new("orders", "42")?).await
    });
    result.unwrap();
}
