//! Locks on a ZooKeeper ensemble.
//!
//! # How a lock is held
//!
//! Each claim creates an ephemeral sequential node, its entry, under the queue of its key. The lowest number
//! has the lock, and every other claim watches the entry directly ahead of its own, so that a release wakes
//! one waiter. After the wait a claim looks again: at its own entry first, which must still be its session's,
//! then at who is ahead now. Source: the ZooKeeper recipe for locks.
//!
//! The fencing token is the zxid of the transaction that created the entry. Entries are numbered in the order
//! of their creation and served in the order of their numbers, so tokens grow from grant to grant. A queue
//! has 2 147 483 647 numbers; once they are used up it grants nothing until it is empty, and then counts from
//! zero. An ensemble that is set up again without its data begins at low zxids: its tokens are below earlier
//! ones.
//!
//! A lease lives as long as the session: its TTL only limits for how long the client trusts it after a proof.
//! A proof is a request in which the leader takes part (a create, or a sync with the reads behind it),
//! counted from before it was sent. An answered ping is no proof, since a follower that has lost its leader
//! still answers pings.
//!
//! ZooKeeper has a limit of its own here. A request that a follower passes on does not restart the session's
//! timeout at the leader: the follower reports its sessions' messages every half tick, and the client sends
//! one at least every third of the session. If client and follower are cut off from the leader together, just
//! after a proof, the leader may thus end the session by a third of it and half a tick earlier than the
//! client counts. So let the session be longer than the TTL: at least 1.5 times as long, and three quarters
//! of a tick (1.5 s, if `tickTime` is 2000; `Lock::connect` does so). Servers grant at most
//! `maxSessionTimeout`, by default 40 s, which suffices for a TTL of 25 s. With a shorter session two clients
//! may believe in their leases at once for that time; their tokens differ all the same.
//!
//! With the session, a holder loses its lease and a waiter its place in the queue: the waiter's call fails
//! with [`BackendError::SessionLost`], and the next one begins at the end
//! of the queue.

// acquisition.rs is the recipe from top to bottom, place.rs one entry of a queue, queue.rs the order of
// entries, sessions.rs the session that all acquisitions share, holder.rs reads who holds a key, error.rs the
// words of its errors. The session and the protocol are the crate dlock-zookeeper.

mod acquisition;
mod error;
mod holder;
mod options;
mod place;
mod queue;
mod sessions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};
use dlock_zookeeper::{ClientOptions, Error};

use self::acquisition::ZooKeeperAcquisition;
pub use self::options::ZooKeeperOptions;
use self::sessions::Sessions;
use crate::backend::{Backend, Claim, Holder};
use crate::error::BackendError;
use crate::key::LockKey;
use crate::setup::{self, SetupError};

/// The probes of this backend, file by file.
pub(crate) const PROBES: &[&[&dlock_runtime::Probe]] = &[acquisition::probe::ALL, place::probe::ALL];

/// A ZooKeeper ensemble. Clones share one session, and so do all locks on them: it is opened by the first
/// call, and replaced by a new one after it expired.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |_, runtime, _| {
/// use std::time::Duration;
///
/// use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
/// use dlock::{Lock, Options};
///
/// let options = ZooKeeperOptions::new(Duration::from_secs(32));
/// let zookeeper = ZooKeeper::new(runtime, &["127.0.0.1:2181"], options)?;
/// let lock = Lock::new(zookeeper, Options::new(Duration::from_secs(20)))?;
/// # Ok(()) });
/// ```
pub struct ZooKeeper<R: Runtime>(Arc<Sessions<R>>);

impl<R: Runtime> ZooKeeper<R> {
    /// Creates a client of the ensemble of `servers`, each written `host:port`; one suffices, all are better.
    /// Sends nothing yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] for no server, one that is no address, or a session that ZooKeeper can't keep.
    pub fn new(
        runtime: R,
        servers: &[impl AsRef<str>],
        options: ZooKeeperOptions,
    ) -> Result<Self, SetupError> {
        options.check()?;
        let servers = setup::check_addresses(servers)?.into_iter().map(String::from);
        let parent = options.parent();
        let mut client = ClientOptions::new(servers, options.session_timeout);
        client.login = options.login;
        Ok(Self(Arc::new(Sessions::new(runtime, client, parent))))
    }
}

impl<R: Runtime> Backend for ZooKeeper<R> {
    type Runtime = R;
    type Acquisition = ZooKeeperAcquisition<R>;

    fn runtime(&self) -> &R {
        self.0.runtime()
    }

    fn system(&self) -> &'static str {
        "zookeeper"
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(self.0.options().session_timeout)
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
        let client = self.0.current();
        // Read before any change of the locks: the answer shows that the login was taken.
        let answered = match client.established(deadline).await {
            Ok(_) => client.exists(self.0.parent(), deadline).await.map(drop),
            Err(error) => Err(error),
        };
        answered.map_err(|error| self.0.failure(error))
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        let client = self.0.current();
        let holder = holder::of(&client, &self.0.queue(key), deadline).await;
        if holder.as_ref().is_err_and(Error::is_session_over) {
            self.0.retire(&client);
        }
        holder.map_err(|error| self.0.failure(error))
    }

    fn open(&self, claim: Claim) -> ZooKeeperAcquisition<R> {
        ZooKeeperAcquisition::new(&self.0, claim)
    }
}

impl<R: Runtime> Clone for ZooKeeper<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> fmt::Debug for ZooKeeper<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeper").field("servers", &self.0.options().servers).finish_non_exhaustive()
    }
}
