//! A term of this process.

use std::fmt;
use std::future::Future;

use crate::backend::{Backend, Released};
use crate::error::{LostError, ReleaseError};
use crate::handle::Handle;
use crate::token::FencingToken;
use crate::watchdog;

/// A term in which this process leads: a lease that is renewed in the background.
///
/// A leadership that is dropped resigns in the background, as a [`Handle`] that is dropped releases.
pub struct Leadership<B: Backend>(Handle<B>);

impl<B: Backend> Leadership<B> {
    pub(super) fn new(handle: Handle<B>) -> Self {
        Self(handle)
    }

    /// Returns the number of the term. Send it with every write of the leader.
    pub fn term(&self) -> FencingToken {
        self.0.fence()
    }

    /// Returns the lease: its owner, its remaining validity, and [`Handle::low`], which completes shortly
    /// before the term may end.
    ///
    /// [`Handle::keep_alive`] and [`Handle::while_held`] would renew it once more: not needed.
    pub fn lease(&self) -> &Handle<B> {
        &self.0
    }

    /// Completes once this process may no longer lead: the validity of the lease is over, by its own clock
    /// before another one can lead, or the server knows another leader, or it has resigned.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<B> {
        self.0.lost()
    }

    /// Runs the `work` of the leader. When the leadership is lost, `work` is dropped at its current await
    /// point and not polled again; it may run again by another call as long as the term lasts.
    ///
    /// Requests that `work` has sent already are not called back: the resource must check the term.
    ///
    /// # Errors
    ///
    /// [`LostError`] if `work` was dropped: [`LostError::Expired`] also after the cap of the election, since
    /// the lease is not renewed then.
    pub async fn lead<F: Future>(&self, work: F) -> Result<F::Output, LostError> {
        watchdog::while_valid(self.0.held(), work).await
    }

    /// Ends the term, so that the next leader need not wait for the end of the lease. `work` that still runs
    /// ends with [`LostError::Released`].
    ///
    /// # Errors
    ///
    /// [`ReleaseError`], as [`Handle::release`].
    pub async fn resign(self) -> Result<Released, ReleaseError> {
        self.0.release().await
    }
}

impl<B: Backend> fmt::Debug for Leadership<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership").field(&self.0).finish()
    }
}
