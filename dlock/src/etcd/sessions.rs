//! The session of a client, shared by all its locks: opened by the first call, replaced when it is over.

use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, timeout_at};

use super::batch::Batcher;
use super::connector::Connector;
use super::keeper::{self, Kept};
use super::session::Session;
use crate::error::BackendError;
use crate::single_flight::SingleFlight;

pub(super) struct Sessions<R> {
    connector: Arc<Connector<R>>,
    batcher: Arc<Batcher>,
    seconds: i64,
    shared: SingleFlight<Arc<Kept>>,
}

impl<R: Runtime> Sessions<R> {
    pub(super) fn new(connector: Arc<Connector<R>>, seconds: i64) -> Self {
        Self { connector, batcher: Arc::default(), seconds, shared: SingleFlight::default() }
    }

    pub(super) fn connector(&self) -> &Arc<Connector<R>> {
        &self.connector
    }

    pub(super) fn batcher(&self) -> &Arc<Batcher> {
        &self.batcher
    }

    /// Returns the client's session, or a new one if there is none or the last is over.
    ///
    /// # Errors
    ///
    /// The errors of this caller's attempt, or of the attempt that it waited for.
    pub(super) async fn current(&self, deadline: Instant) -> Result<Arc<Session>, BackendError> {
        let runtime = self.connector.runtime();
        let now = runtime.now();
        let seen = match self.shared.current(|kept| kept.session.check(now).is_ok()) {
            Ok(kept) => return Ok(Arc::clone(&kept.session)),
            Err(seen) => seen,
        };
        let turn = timeout_at(runtime, deadline, self.shared.turn()).await;
        let turn = turn.map_err(|_| BackendError::NoAnswer)?;
        let now = runtime.now();
        if let Some(shared) = turn.shared(&seen, |kept| kept.session.check(now).is_ok()) {
            return shared.map(|kept| Arc::clone(&kept.session));
        }
        let opened = keeper::open(&self.connector, self.seconds, deadline).await;
        turn.finish(opened.map(Arc::new)).map(|kept| Arc::clone(&kept.session))
    }
}
