//! A claim's call of the Lock service.

use std::future::pending;

use dlock::BackendError;
use tokio::sync::oneshot;

/// State of the call.
pub(super) enum Call {
    /// It has not been made.
    Idle,
    /// A task waits for it, until this is dropped.
    InProgress(oneshot::Receiver<Result<(), BackendError>>),
    /// The service has granted the lock.
    Held,
    /// It failed. The service may be about to delete the claim's key, so another call needs another session.
    Failed,
}

impl Call {
    /// Waits until the service has answered.
    pub(super) async fn answered(&mut self) -> Result<(), BackendError> {
        let answer = match self {
            Self::Held => return Ok(()),
            Self::InProgress(answer) => answer.await,
            Self::Idle | Self::Failed => pending().await,
        };
        *self = Self::Failed;
        answer.unwrap_or(Err(BackendError::NoAnswer))?;
        *self = Self::Held;
        Ok(())
    }
}
