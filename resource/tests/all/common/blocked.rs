//! Makes an asynchronous store complete at once, by an executor of its own for each call.

use resource::ResourceKey;
use resource::fence::{Beside, Fencing, WriteOutcome};
use resource::store::{
    BucketStore, FenceAdmin, FenceChange, Read, ReadOutcome, SetOutcome, Store, StoreError, Write,
};

pub(crate) struct Blocked<S>(pub(crate) S);

pub(crate) fn block_on<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(call)
}

impl<S: Store> Store for Blocked<S> {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        block_on(self.0.write(key, write, fencing))
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        block_on(self.0.read(key, read, fencing))
    }

    async fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        block_on(self.0.write_beside(key, write, beside, fencing))
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        block_on(self.0.read_beside(key, read, beside, fencing))
    }
}

impl<S: FenceAdmin> FenceAdmin for Blocked<S> {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        block_on(self.0.set_fence(key, change))
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        block_on(self.0.fence_changes(key))
    }
}

/// Returns a source of random names.
pub(crate) fn runtime() -> dlock::TokioRuntime {
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    dlock::TokioRuntime::new(executor.handle().clone())
}

/// Returns a store in a bucket in memory, where every value has an object of its own.
pub(crate) fn bucket() -> Blocked<BucketStore> {
    let bucket = std::sync::Arc::new(object_store::memory::InMemory::new());
    Blocked(BucketStore::new(bucket, "resources", &runtime()).with_inline_bytes_max(0))
}
