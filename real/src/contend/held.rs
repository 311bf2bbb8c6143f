//! The leases of an attempt: one, those of several keys at once, that of nested sections, or that of a term.

use dlock::election::{Election, Leadership};
use dlock::{
    AcquireAllError, AcquireError, Backend, Cap, EnterError, Entered, Handle, Handles, Instant, KeyError,
    Left, Lock, LockKey, OptionsError, Released,
};

use super::Load;
use crate::acquire::Acquire;
use crate::primitive::Primitive;

/// The leases of an attempt.
pub(super) enum Held<B: Backend, T: Send + 'static> {
    One(Handle<B, T>),
    Several(Handles<B>),
    /// Sections of one scope, the outermost first.
    Nested(Vec<Entered<B>>),
    Term(Leadership<B>),
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
        Ok(match load.primitive {
            Primitive::Several { keys } => {
                let keys = (0..u64::from(keys)).map(key).collect::<Result<Vec<_>, _>>()?;
                Self::Several(lock.acquire_all(&keys, deadline).await?)
            }
            Primitive::Reentrant { depth } => {
                let (scope, key) = (lock.scope(), key(0)?);
                let mut sections = Vec::new();
                for _ in 0..depth {
                    sections.push(scope.acquire(&key, deadline).await?);
                }
                Self::Nested(sections)
            }
            Primitive::Election => {
                let election = Election::new(lock.clone(), key(0)?, Cap(load.lasts))?;
                Self::Term(election.campaign(deadline).await?)
            }
            _ => {
                let is_shared = load.primitive.reads(attempt / load.keys);
                Self::One(A::acquire(lock, &key(0)?, is_shared, deadline).await?)
            }
        })
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
            Self::Nested(mut sections) => {
                let mut released = None;
                while let Some(section) = sections.pop() {
                    if let Left::Released(how) = section.leave().await.ok()? {
                        released = Some(how);
                    }
                }
                released
            }
            Self::Term(leadership) => leadership.resign().await.ok(),
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

impl From<EnterError> for NotHeld {
    fn from(error: EnterError) -> Self {
        match error {
            EnterError::Acquire(source) => source.into(),
            error => Self { words: error.to_string(), source: None },
        }
    }
}

impl From<OptionsError> for NotHeld {
    fn from(error: OptionsError) -> Self {
        Self { words: error.to_string(), source: None }
    }
}

impl From<KeyError> for NotHeld {
    fn from(error: KeyError) -> Self {
        Self { words: error.to_string(), source: None }
    }
}
