//! Locks on a ZooKeeper ensemble: the backend.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::acquisition::ZooKeeperAcquisition;
use super::options::ClientOptions;
use super::sessions::Sessions;
use crate::backend::{Backend, Claim};
use crate::runtime::Runtime;

/// A ZooKeeper ensemble. Clones share one session, and so do all locks on them: it is opened by the first call, and
/// replaced by a new one after it expired.
pub struct ZooKeeper<R: Runtime>(Arc<Sessions<R>>);

impl<R: Runtime> ZooKeeper<R> {
    /// The ensemble of these servers, each written `host:port`. Nothing is sent yet.
    ///
    /// `session_timeout` bounds the TTL of locks, and is how long a holder that has crashed blocks others. The servers may
    /// settle on another, within bounds of their own (`minSessionTimeout`, `maxSessionTimeout`: 2 and 20 of their ticks):
    /// then leases are trusted for no longer than that.
    pub fn new<S: Into<String>>(
        runtime: R,
        servers: impl IntoIterator<Item = S>,
        session_timeout: Duration,
    ) -> Self {
        Self::with_options(runtime, ClientOptions::new(servers, session_timeout))
    }

    /// The same, with all that a session can be told.
    pub fn with_options(runtime: R, options: ClientOptions) -> Self {
        Self(Arc::new(Sessions::new(runtime, options)))
    }
}

impl<R: Runtime> Backend for ZooKeeper<R> {
    type Runtime = R;
    type Acquisition = ZooKeeperAcquisition<R>;

    fn runtime(&self) -> &R {
        self.0.runtime()
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(self.0.options().session_timeout)
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
