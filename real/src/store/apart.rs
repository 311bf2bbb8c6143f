//! Completes the calls of an asynchronous store even if their caller is gone.

use std::future::Future;
use std::sync::Arc;

use resource::ResourceKey;
use resource::fence::{Beside, Fencing, WriteOutcome};
use resource::store::{FenceAdmin, FenceChange, Read, ReadOutcome, SetOutcome, Store, StoreError, Write};

/// Runs each call of a store as a task of its own. Otherwise, a client that closes its connection would
/// cancel a decision on its way: it could take effect unreported.
#[derive(Debug)]
pub struct Apart<S>(Arc<S>);

impl<S: Store> Apart<S> {
    /// Wraps `store`.
    pub fn new(store: S) -> Self {
        Self(Arc::new(store))
    }
}

impl<S: Store> Store for Apart<S> {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.write_beside(key, write, &Beside::NONE, fencing).await
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.read_beside(key, read, &Beside::NONE, fencing).await
    }

    async fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let (store, key, write, beside) = (Arc::clone(&self.0), key.clone(), write.clone(), beside.clone());
        apart(async move { store.write_beside(&key, &write, &beside, fencing).await }).await
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let (store, key, read, beside) = (Arc::clone(&self.0), key.clone(), read.clone(), beside.clone());
        apart(async move { store.read_beside(&key, &read, &beside, fencing).await }).await
    }
}

impl<S: FenceAdmin> FenceAdmin for Apart<S> {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let (store, key, change) = (Arc::clone(&self.0), key.clone(), change.clone());
        apart(async move { store.set_fence(&key, &change).await }).await
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        self.0.fence_changes(key).await
    }
}

/// Completes a decision even if the caller is gone.
#[allow(clippy::disallowed_methods, reason = "these stores are live only")]
pub(super) async fn apart<T: Send + 'static>(
    decision: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::spawn(decision).await.map_err(|error| StoreError::Unavailable(Box::new(error)))?
}
