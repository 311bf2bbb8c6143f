//! A Redis server, version 7.0, as far as lock clients can observe one.
//!
//! Read [`request`] and [`reply`] for the wire protocol (RESP2), [`command`] for what each command does, [`lua`] for
//! scripts, [`state`] and [`keyspace`] for the data, [`effects`] for what leaves the server: observers, the append-only
//! file and replicas read one stream of effects.

mod command;
mod connection;
mod core;
mod effects;
mod glob;
mod info;
mod keyspace;
mod lua;
mod number;
mod observe;
mod random;
mod reply;
mod request;
mod state;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

pub use effects::{Effect, Removal};
pub use observe::Observer;

use connection::Connection;
use core::{Client, Core};
use reply::Reply;
use request::Args;
use state::Record;

/// What a server needs of the world around it.
pub trait ServerWorld: Send + Sync + 'static {
    /// The wall clock of the server's machine: microseconds since the Unix epoch. Keys expire by it, so a step of it
    /// is felt, as in Redis.
    fn wall_micros(&self) -> u64;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// How a server is set up.
pub struct ServerOptions {
    /// The server's name: what observers are told when no client caused an effect.
    pub name: String,
    /// Told of what the server does.
    pub observer: Arc<dyn Observer>,
}

/// A server. Clones are the same server.
pub struct Server<W> {
    shared: Arc<Shared<W>>,
}

struct Shared<W> {
    world: W,
    options: ServerOptions,
    core: Mutex<Core>,
}

impl ServerOptions {
    /// A server called `name`, which nobody observes.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), observer: Arc::new(()) }
    }
}

impl<W: ServerWorld> Server<W> {
    /// Starts a server.
    pub fn new(options: ServerOptions, world: W) -> Self {
        Self { shared: Arc::new(Shared { world, options, core: Mutex::default() }) }
    }

    /// Serves one connection until the client leaves or the stream breaks. `client` is what observers are told of who
    /// is at the other end.
    pub async fn serve_connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send, client: &str) {
        // A stream that breaks is the client's end like any other.
        let _ = Connection::new(self, stream, client).serve().await;
    }

    /// Commands executed since the server started, those inside scripts included.
    pub fn executed(&self) -> u64 {
        self.core().state.executed
    }

    fn execute(&self, client: &mut Client, label: &str, args: Args<'_>) -> Reply {
        let mut core = self.core();
        let reply = core.execute(client, args, self.now_micros());
        core.take_record(&mut client.record);
        drop(core);
        self.tell(label, &client.record);
        client.record.clear();
        reply
    }

    fn tell(&self, client: &str, record: &Record) {
        let observer = &self.shared.options.observer;
        if !record.effects.is_empty() {
            observer.changed(client, &record.effects);
        }
        record.commands.iter().for_each(|command| observer.executed(client, command));
    }

    fn now_micros(&self) -> i64 {
        i64::try_from(self.shared.world.wall_micros()).unwrap_or(i64::MAX)
    }
}

impl<W> Server<W> {
    fn core(&self) -> MutexGuard<'_, Core> {
        self.shared.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Clone for Server<W> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<W> fmt::Debug for Server<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.shared.options.name).finish_non_exhaustive()
    }
}
