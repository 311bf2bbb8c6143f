//! [`Future`] support for [`SendWrapper`].
use std::{
    future::Future,
    ops::{Deref as _, DerefMut as _},
    pin::Pin,
    task,
};

use crate::SendWrapper;

impl<F: Future> Future for SendWrapper<F> {
    type Output = F::Output;

    /// Polls this [`SendWrapper`] [`Future`].
    ///
    /// # Panics
    ///
    /// Polling panics if it is done from a different thread than the one the [`SendWrapper`]
    /// instance has been created with.
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Self::Output> {
        self.assert_valid_for_poll();
        // This is safe as `SendWrapper` itself points to the inner `Future`.
        // So, as long as `SendWrapper` is pinned, the inner `Future` is pinned too.
        unsafe { self.map_unchecked_mut(Self::deref_mut) }.poll(cx)
    }
}
