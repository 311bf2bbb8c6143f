//! The two kinds of acquires: with a fencing token, or without.

use dlock::{AcquireError, Backend, FencingToken, Handle, Instant, Lock, LockKey, Unfenced};

/// A kind of acquire.
pub(crate) trait Acquire<B: Backend>: 'static {
    /// The token of its handles.
    type Token: Send + 'static;

    /// Waits until the lease is acquired, for reading if `is_shared`, or `deadline` passes.
    fn acquire(
        lock: &Lock<B>,
        key: &LockKey,
        is_shared: bool,
        deadline: Instant,
    ) -> impl Future<Output = Result<Handle<B, Self::Token>, AcquireError>> + Send;
}

/// Demands a token.
pub(crate) struct WithToken;

/// Demands none.
pub(crate) struct WithoutToken;

impl<B: Backend> Acquire<B> for WithToken {
    type Token = FencingToken;

    async fn acquire(
        lock: &Lock<B>,
        key: &LockKey,
        is_shared: bool,
        deadline: Instant,
    ) -> Result<Handle<B>, AcquireError> {
        if is_shared { lock.acquire_shared(key, deadline).await } else { lock.acquire(key, deadline).await }
    }
}

impl<B: Backend> Acquire<B> for WithoutToken {
    type Token = Unfenced;

    async fn acquire(
        lock: &Lock<B>,
        key: &LockKey,
        is_shared: bool,
        deadline: Instant,
    ) -> Result<Handle<B, Unfenced>, AcquireError> {
        let request = lock.request(key).without_token();
        if is_shared { request.shared() } else { request }.acquire(deadline).await
    }
}
