// The surroundings of the examples in this crate's documentation: a resource on a free port, and a lock on a
// server in memory.

mod memory {
    include!("../../dlock/doc/memory.rs");
}

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use dlock::{Lock, Options, TokioRuntime};
use memory::Memory;
use resource::client::Client;
use resource::http::{App, Config, serve_connection};
use resource::store::MemoryStore;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};

/// Runs an example with a client of a service, whose store is in memory.
pub fn run<F>(example: F)
where
    F: AsyncFnOnce(TokioRuntime, Client<TokioRuntime>) -> Result<(), Box<dyn Error>>,
{
    let tokio = Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(async move {
            let app = App::new(Arc::new(MemoryStore::new()), Config::default());
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, &app));
            }
        });
        let runtime = TokioRuntime::new(Handle::current());
        example(runtime.clone(), Client::new(runtime, &address)).await
    });
    result.unwrap();
}

/// Creates a lock whose leases live for 2 s.
pub fn lock(runtime: &TokioRuntime) -> Lock<Memory<TokioRuntime>> {
    Lock::new(Memory::new(runtime.clone()), Options::new(Duration::from_secs(2))).unwrap()
}
