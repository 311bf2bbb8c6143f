//! Locks on a ZooKeeper ensemble: the backend.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::acquisition::ZooKeeperAcquisition;
use super::options::{ClientOptions, ZooKeeperOptions};
use super::sessions::Sessions;
use crate::backend::{Backend, Claim};
use crate::runtime::Runtime;
use crate::setup::{self, SetupError};

/// A ZooKeeper ensemble. Clones share one session, and so do all locks on them: it is opened by the first call, and
/// replaced by a new one after it expired.
pub struct ZooKeeper<R: Runtime>(Arc<Sessions<R>>);

impl<R: Runtime> ZooKeeper<R> {
    /// Creates a client of the ensemble of `servers`, each written `host:port`; one suffices, all are better. Sends nothing
    /// yet.
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
        let options = ClientOptions::new(servers, options.session_timeout);
        Ok(Self(Arc::new(Sessions::new(runtime, options))))
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
