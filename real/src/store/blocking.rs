//! Makes a blocking store usable by an async service.

use std::sync::Arc;

use resource::ResourceKey;
use resource::fence::{Beside, Fencing, WriteOutcome};
use resource::store::{FenceAdmin, FenceChange, Read, ReadOutcome, SetOutcome, Store, StoreError, Write};
use tokio::runtime::Handle;

/// Runs the calls of a store on threads that may block, so that other tasks continue while it syncs its disk.
#[derive(Debug)]
pub struct Blocking<S>(Arc<S>);

impl<S: Store> Blocking<S> {
    /// Wraps `store`.
    pub fn new(store: S) -> Self {
        Self(Arc::new(store))
    }
}

impl<S: Store> Store for Blocking<S> {
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
        apart(move |executor| executor.block_on(store.write_beside(&key, &write, &beside, fencing))).await?
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let (store, key, read, beside) = (Arc::clone(&self.0), key.clone(), read.clone(), beside.clone());
        apart(move |executor| executor.block_on(store.read_beside(&key, &read, &beside, fencing))).await?
    }
}

impl<S: FenceAdmin> FenceAdmin for Blocking<S> {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let (store, key, change) = (Arc::clone(&self.0), key.clone(), change.clone());
        apart(move |executor| executor.block_on(store.set_fence(&key, &change))).await?
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        let (store, key) = (Arc::clone(&self.0), key.clone());
        apart(move |executor| executor.block_on(store.fence_changes(&key))).await?
    }
}

/// Once started, the call completes even if the caller is gone.
#[allow(clippy::disallowed_methods, reason = "the disk blocks, on a live server")]
async fn apart<T: Send + 'static>(call: impl FnOnce(Handle) -> T + Send + 'static) -> Result<T, StoreError> {
    let executor = Handle::current();
    tokio::task::spawn_blocking(move || call(executor))
        .await
        .map_err(|error| StoreError::Unavailable(Box::new(error)))
}
