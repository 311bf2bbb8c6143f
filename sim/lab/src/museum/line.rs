//! A connection to one Redis that stays open from one command to the next, as in a pool.

use std::sync::{Arc, Mutex, PoisonError};

use dlock::{BackendError, Runtime};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};
use sim::world::runtime::SimRuntime;

use crate::wire::{Wire, ask};

/// A connection that is being opened, or is open; `None` if that failed.
type Opening = Shared<BoxFuture<'static, Option<MultiplexedConnection>>>;

/// A connection to one server, opened when needed. Clones share it.
#[derive(Clone)]
pub(super) struct Line {
    runtime: SimRuntime,
    wire: Wire<SimRuntime>,
    opening: Arc<Mutex<Option<Opening>>>,
}

impl Line {
    /// Creates the connection to the server at `address`, not open yet.
    pub(super) fn new(runtime: SimRuntime, address: &str) -> Self {
        Self { wire: Wire::new(runtime.clone(), address), runtime, opening: Arc::default() }
    }

    /// Opens the connection in the background, unless it is open.
    pub(super) fn open(&self) -> Opening {
        let mut kept = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opening) = kept.as_ref().filter(|opening| !matches!(opening.peek(), Some(None))) {
            return opening.clone();
        }
        let wire = self.wire.clone();
        let opening = async move { wire.open().await.ok() }.boxed().shared();
        self.runtime.spawn(opening.clone().map(drop));
        kept.insert(opening).clone()
    }

    /// Runs one command.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if the server can't be reached, or gives no answer of the expected type.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        let mut connection = self.open().await.ok_or(BackendError::NoAnswer)?;
        ask(&mut connection, command).await
    }

    /// Drops an open connection: the next command opens another one.
    pub(super) fn close(&self) {
        let mut kept = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept.take().filter(|opening| opening.peek().is_none());
    }
}
