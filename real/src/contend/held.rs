//! What an attempt acquires: one lease, or those of several keys at once.

use dlock::{
    AcquireAllError, AcquireError, Backend, Handle, Handles, Instant, KeyError, Lock, LockKey, Released,
};

use super::Load;
use crate::acquire::Acquire;
use crate::primitive::Primitive;

/// The leases of an attempt.
pub(super) enum Held<B: Backend, T: Send + 'static> {
    One(Handle<B, T>),
    Several(Handles<B>),
}

/// Why an attempt has no lease.
pub(super) struct NotHeld {
    /// The error of the acquire; `None` if leases that it had were lost before the last one was granted.
    pub(super) source: Option<AcquireError>,
    pub(super) words: String,
}

impl<B: Backend, T: Send + 'static> Held<B, T> {
    /// Acquires for the attempt with this number: its key is the number modulo those of the load.
    pub(super) async fn acquire<A: Acquire<B, Token = T>>(
        lock: &Lock<B>,
        load: &Load,
        attempt: u64,
        deadline: Instant,
    ) -> Result<Self, NotHeld> {
        let key = |next: u64| LockKey::new(&load.key, &((attempt + next) % load.keys).to_string());
        if matches!(load.primitive, Primitive::Several { .. }) {
            let keys = (0..u64::from(load.primitive.keys())).map(key).collect::<Result<Vec<_>, _>>()?;
            return Ok(Self::Several(lock.acquire_all(&keys, deadline).await?));
        }
        let is_shared = load.primitive.reads(attempt / load.keys);
        Ok(Self::One(A::acquire(lock, &key(0)?, is_shared, deadline).await?))
    }

    /// Releases all; `None` if a release was not confirmed. [`Released::NotOwner`] if one of the leases had
    /// ended before.
    pub(super) async fn release(self) -> Option<Released> {
        match self {
            Self::One(handle) => handle.release().await.ok(),
            Self::Several(handles) => {
                let released = handles.release().await.ok()?;
                let is_lost = released.iter().any(|(_, released)| *released == Released::NotOwner);
                Some(if is_lost { Released::NotOwner } else { Released::Done })
            }
        }
    }
}

impl From<AcquireError> for NotHeld {
    fn from(error: AcquireError) -> Self {
        Self { words: error.to_string(), source: Some(error) }
    }
}

impl From<AcquireAllError> for NotHeld {
    fn from(error: AcquireAllError) -> Self {
        match error {
            AcquireAllError::NotAcquired { source, .. } => source.into(),
            error => Self { words: error.to_string(), source: None },
        }
    }
}

impl From<KeyError> for NotHeld {
    fn from(error: KeyError) -> Self {
        Self { words: error.to_string(), source: None }
    }
}
