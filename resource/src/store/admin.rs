//! An operator's access to a store: setting a fence, and the record of who did it.

use std::future::Future;

use dlock::FencingToken;

use super::{Store, StoreError};
use crate::ResourceKey;
use crate::fence::FenceMoved;

/// The largest number of records that [`FenceAdmin::fence_changes`] returns.
pub const CHANGES_MAX: usize = 100;

/// A fence set by an operator, as the audit record keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceChange {
    /// The highest token seen before; `None` if there was none. The change is refused if it is another.
    pub from: Option<FencingToken>,
    /// The highest token seen afterwards.
    pub to: Option<FencingToken>,
    /// The operator: the name of the credential, and the address and certificate of the client.
    pub who: String,
    /// The operator's reason.
    pub reason: String,
    /// The time in milliseconds since 1970, by the service's clock.
    pub at_millis: u64,
}

/// The outcome of setting a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOutcome {
    /// It is set, and recorded.
    Set,
    /// The fence is not where the operator expected it: nothing is changed or recorded.
    Moved(FenceMoved),
}

/// A store whose fences an operator can set: see [`Fence::set`](crate::fence::Fence::set).
///
/// An implementation sets the fence and writes the record in one transaction, which excludes decisions about
/// the key, and is durable before the future completes. It emits the change by [`crate::event::fence_set`].
pub trait FenceAdmin: Store {
    /// Sets the fence of `key` from `change.from` to `change.to`, and keeps `change` as its record.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store failed; the change may or may not be applied.
    fn set_fence(
        &self,
        key: &ResourceKey,
        change: &FenceChange,
    ) -> impl Future<Output = Result<SetOutcome, StoreError>> + Send;

    /// Returns the newest records of `key`, at most [`CHANGES_MAX`], the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store failed.
    fn fence_changes(
        &self,
        key: &ResourceKey,
    ) -> impl Future<Output = Result<Vec<FenceChange>, StoreError>> + Send;
}
