//! Locks on one Redis server.
//!
//! Each operation is one script and one round trip, over one connection that all clones share. A request that
//! demands no token is a `SET` instead, and takes a second round trip if the lock is taken.
//!
//! Servers with compare-and-set and compare-and-delete release and renew by these commands instead: Redis 8.4
//! (`SET … IFEQ`, `DELEX`) and Valkey 9 (`SET … IFEQ`, `DELIFEQ`). The first release or renewal on each
//! connection finds out, at no cost; a user who lacks the right to such a command goes on with scripts.
//!
//! No two unexpired leases exist on a key, and each fencing token is above all earlier ones, for as long as
//! the server keeps the writes that it has acknowledged. A crash without fsync, or a failover to a replica
//! that lags, may lose both; [`TokenSource::ServerTime`] keeps the tokens in order all the same.

// Layers, from below: script.rs writes the commands that run scripts, and commands.rs those of newer servers;
// reply.rs reads the answers. connection.rs opens and replaces the connection; eval.rs runs scripts on it,
// and native.rs the server's own commands in their place; node.rs adds deadlines. operation.rs has the
// acquire and the release, of one claim or of many; batch.rs lets many claims share calls, and unfenced.rs
// acquires without a token; holder.rs reads who holds a key; permit/ has the scripts of a semaphore, readers/
// those of a lock for readers and a writer, queue/ those of a mutex with a limit of its waiters, and shared/
// those of tokens from a shared counter; jobs/ is a job queue; requests.rs remembers unanswered requests;
// client.rs is what all acquisitions share, release.rs sends a release, and acquisition.rs puts them
// together. waiters.rs and listener.rs wake waiters after a release. The .lua files are the scripts that the
// server runs.

mod acquisition;
mod batch;
mod client;
mod commands;
mod connection;
mod eval;
mod holder;
mod jobs;
mod listener;
mod native;
mod node;
mod operation;
mod options;
mod parts;
mod permit;
mod queue;
mod readers;
mod release;
mod reply;
mod requests;
mod script;
mod shared;
mod unfenced;
mod waiters;

use std::fmt;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime};

pub(crate) use self::acquisition::RedisAcquisition;
use self::batch::Batcher;
use self::client::Client;
pub(crate) use self::holder::StoredHolder;
pub use self::jobs::Queue;
use self::listener::Listener;
use self::node::Node;
use self::operation::Operation;
pub use self::options::{RedisOptions, TokenSource, Waiting};
pub(crate) use self::reply::Grant;
pub(crate) use self::script::{Arg, Call, SCRIPTS, Script, StoredKey};
pub use self::shared::shared_counter;
use crate::backend::{Backend, Claim, Holder};
use crate::error::BackendError;
use crate::key::LockKey;
use crate::setup::{self, SetupError};
use crate::token::owner_prefix;

/// The probes of this backend, file by file.
pub(crate) const PROBES: &[&[&dlock_runtime::Probe]] =
    &[acquisition::probe::ALL, release::probe::ALL, node::probe::ALL, listener::probe::ALL];

/// A Redis server. Clones share one connection, which is opened by the first call and replaced after a
/// failure.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |_, runtime, _| {
/// use dlock::redis::{Redis, RedisOptions, TokenSource};
///
/// let mut options = RedisOptions::default();
/// options.password = Some("secret".to_owned());
/// // Tokens grow even if the server loses its counter, as long as its clock does not step back.
/// options.tokens = TokenSource::ServerTime;
/// // Connects with the first acquire.
/// let redis = Redis::new(runtime, "127.0.0.1:6379", options)?;
/// # Ok(()) });
/// ```
pub struct Redis<R: Runtime> {
    client: Arc<Client<R>>,
    tokens: TokenSource,
    waiting: Waiting,
}

impl<R: Runtime> Redis<R> {
    /// Creates a client of the server at `address`, written `host:port`. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// [`SetupError::Address`] for an address that can't be one.
    pub fn new(runtime: R, address: &str, options: RedisOptions) -> Result<Self, SetupError> {
        setup::check_address(address)?;
        let node = Node::new(runtime, address, options.login());
        let is_announced = options.waiting == Waiting::Called;
        let client = Client {
            node,
            acquires: Arc::new(Batcher::new(Operation::Acquire)),
            releases: Arc::new(Batcher::new(Operation::Release { is_announced })),
            listener: Listener::new(),
        };
        Ok(Self { client: Arc::new(client), tokens: options.tokens, waiting: options.waiting })
    }

    /// Runs a script that changes a lease only for its owner; returns whether it did.
    pub(crate) async fn eval(&self, call: Call<'_>, deadline: Instant) -> Result<bool, BackendError> {
        let (_, value) = self.client.node.eval(call, deadline, |_| ()).await?;
        reply::is_done(&value)
    }
}

impl<R: Runtime> Backend for Redis<R> {
    type Runtime = R;
    type Acquisition = RedisAcquisition<R>;

    fn runtime(&self) -> &R {
        self.client.node.runtime()
    }

    fn system(&self) -> &'static str {
        "redis"
    }

    fn has_permits(&self) -> bool {
        true
    }

    fn has_readers(&self) -> bool {
        true
    }

    fn has_queue(&self, _: u32) -> bool {
        true
    }

    async fn connect(&self, deadline: Instant) -> Result<(), BackendError> {
        self.client.node.greet(deadline).await
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        let holder = self.stored_holder(key, deadline).await?;
        Ok(holder.map(|stored| Holder { token: stored.token, name: owner_prefix(&stored.owner).to_owned() }))
    }

    fn open(&self, claim: Claim) -> RedisAcquisition<R> {
        RedisAcquisition::new(&self.client, self.tokens, self.waiting, claim)
    }
}

impl<R: Runtime> Clone for Redis<R> {
    fn clone(&self) -> Self {
        Self { client: Arc::clone(&self.client), ..*self }
    }
}

impl<R: Runtime> fmt::Debug for Redis<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("address", &self.client.node.address()).finish_non_exhaustive()
    }
}
