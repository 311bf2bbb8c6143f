//! Locks on an etcd cluster, through etcd's own client library.
//!
//! A client has one *session*: a lease at the cluster, kept alive by a task, shared by all its locks. A lock
//! is a queue of keys under such leases, served in the order of their create revisions; a waiter watches only
//! the key directly ahead of its own, so that a release wakes one waiter and not all (the recipe of etcd's
//! `client/v3/concurrency/mutex.go`). After the wait it checks that its own key still exists: if the lease
//! ended meanwhile, the key is gone, and the lock belongs to another owner (etcd issue 11456, found by Jepsen
//! in etcd 3.4.3).
//!
//! # The fencing token
//!
//! The token is the create revision of the holder's key, also after a wait or a lost answer. It grows from
//! grant to grant of a key. Proof: a claim is granted only while its key has the lowest create revision of
//! the queue. A key that enters later gets a revision above all earlier ones, and a key that has left never
//! returns with its old revision. If a grant of revision *n* followed one of *m > n*, the key of *n* would
//! have been in the queue, ahead of *m*, when *m* was granted: a contradiction.
//!
//! Revisions are as durable as etcd's data: a majority keeps them. A cluster that is restored from a backup
//! counts on from the backup's revision and hands out tokens that were used before; restore it with `etcdutl
//! snapshot restore --bump-revision`, by more than was written since the backup.
//!
//! # What a lost session means
//!
//! A session is over when the cluster no longer knows its lease, or has lost what the session had written
//! (after a restore from a backup, for example), or when no keepalive was answered within its TTL, counted
//! from the sending. Then it is over for good: its claims are lost, whatever the cluster reports later; its
//! lease is revoked when the cluster is reached again; and the next acquire opens another session.
//!
//! # What a member can do
//!
//! One member serves at a time, in the order in which they are given: give each process an order of its own
//! to spread the load. If a member can't be reached, stays silent or knows no leader, the client goes to the
//! next one ([`BackendError::Isolated`]). A member counts as silent if calls have waited for a sixth of the
//! session, at most one second, without any answer; if it has answered nothing on a new connection when the
//! first call times out; or if a keepalive stays unanswered. Other calls that time out fail alone. Watches
//! move with the requests: the keepalives, which only the leader can answer, show every third of a session
//! that the member that serves the watches is in touch with it.

// acquisition.rs is the recipe, place.rs the keys and transactions of the queue, batch.rs sends those of many
// claims as one, trail.rs the requests sent for a claim; holder.rs reads who holds a key; session.rs is a
// session, keeper.rs keeps it alive, sessions.rs shares it; connector.rs and stream.rs are the connection,
// and silence.rs tells when its member is silent.

mod acquisition;
mod batch;
mod connector;
mod error;
mod holder;
mod keeper;
mod options;
mod place;
mod session;
mod sessions;
mod silence;
mod stream;
mod trail;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};

use self::acquisition::EtcdAcquisition;
use self::connector::Connector;
pub use self::options::EtcdOptions;
use self::sessions::Sessions;
use crate::backend::{Backend, Claim, Holder};
use crate::error::BackendError;
use crate::key::LockKey;
use crate::setup::{self, SetupError};

/// The longest time for which calls wait without any answer before the client retires the connection.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The probes of this backend, file by file.
pub(crate) const PROBES: &[&[&dlock_runtime::Probe]] =
    &[acquisition::probe::ALL, connector::probe::ALL, keeper::probe::ALL];

/// An etcd cluster. Clones share one session and one connection, which are opened by the first call and
/// replaced after a loss.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |_, runtime, _| {
/// use std::time::Duration;
///
/// use dlock::etcd::{Etcd, EtcdOptions};
/// use dlock::{Lock, Options};
///
/// let etcd = Etcd::new(runtime, &["127.0.0.1:2379"], EtcdOptions::new(Duration::from_secs(45)))?;
/// // At most as long as the session; two thirds of it have their full validity at every grant.
/// let lock = Lock::new(etcd, Options::new(Duration::from_secs(30)))?;
/// # Ok(()) });
/// ```
pub struct Etcd<R: Runtime> {
    sessions: Arc<Sessions<R>>,
    session_ttl: Duration,
}

impl<R: Runtime> Etcd<R> {
    /// Creates a client of the cluster with the members at `endpoints`, each written `host:port`; one
    /// suffices, all are better. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] for no endpoint, one that is no address, or a session that etcd can't keep.
    pub fn new(runtime: R, endpoints: &[impl AsRef<str>], options: EtcdOptions) -> Result<Self, SetupError> {
        let seconds = options.seconds()?;
        let session_ttl = Duration::from_secs(seconds.unsigned_abs());
        let addresses = setup::check_addresses(endpoints)?;
        let silence_max = SILENCE_MAX.min(session_ttl / 6);
        let connector = Connector::new(runtime, addresses, options.user.as_ref(), silence_max);
        Ok(Self { sessions: Arc::new(Sessions::new(Arc::new(connector), seconds)), session_ttl })
    }
}

/// Connects etcd's own client to the first of `endpoints` that accepts it before `deadline`, over the streams
/// of `runtime`, as the locks do. It does not reconnect. For tools that read what locks have stored.
///
/// # Errors
///
/// [`BackendError`] if no member can be reached, or the login is refused.
#[doc(hidden)]
pub async fn client<R: Runtime>(
    runtime: R,
    endpoints: &[String],
    user: Option<&(String, String)>,
    deadline: Instant,
) -> Result<etcd_client::Client, BackendError> {
    let endpoints = endpoints.iter().map(|endpoint| endpoint.as_str().into()).collect();
    Connector::new(runtime, endpoints, user, SILENCE_MAX).client(deadline).await
}

impl<R: Runtime> Backend for Etcd<R> {
    type Runtime = R;
    type Acquisition = EtcdAcquisition<R>;

    fn runtime(&self) -> &R {
        self.sessions.connector().runtime()
    }

    fn system(&self) -> &'static str {
        "etcd"
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(self.session_ttl)
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
        // Opens the session that the first acquire needs.
        self.sessions.current(deadline).await.map(drop)
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        holder::of(self.sessions.connector(), key, deadline).await
    }

    fn open(&self, claim: Claim) -> EtcdAcquisition<R> {
        EtcdAcquisition::new(&self.sessions, &claim)
    }
}

impl<R: Runtime> Clone for Etcd<R> {
    fn clone(&self) -> Self {
        Self { sessions: Arc::clone(&self.sessions), session_ttl: self.session_ttl }
    }
}

impl<R: Runtime> fmt::Debug for Etcd<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd")
            .field("endpoints", &self.sessions.connector().addresses())
            .finish_non_exhaustive()
    }
}
