//! Several keys at once: acquires them in one order, so that no two clients wait for each other.
//!
//! Source: the ordering of resources by J. W. Havender, "Avoiding deadlock in multitasking systems", IBM
//! Systems Journal 7(2), 1968. All clients request in one order. The client that holds the last of the
//! awaited keys therefore waits for no other key, so a circle of waiters can't close.

use std::collections::BTreeSet;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes};

use crate::backend::Backend;
use crate::error::{AcquireAllError, AcquireError, KeyLostError, LostError};
use crate::handles::{Handles, Renewals};
use crate::key::LockKey;
use crate::lock::Lock;
use crate::watchdog::Cap;

/// While later keys are waited for, the deadline of the acquire alone ends the renewals.
const UNTIL_THE_DEADLINE: Cap = Cap(Duration::MAX);

impl<B: Backend> Lock<B> {
    /// Acquires the leases on all `keys` or none, and waits for them until `deadline`, which is one for all.
    ///
    /// It acquires one key after the other, in the order of the bytes of their names ([`LockKey::name`]),
    /// whatever their order in `keys`. As long as everybody who needs several keys acquires them by this
    /// call, with one call at a time, no two wait for each other (Havender's ordering of resources, 1968).
    /// Leases that are acquired already are renewed while it waits for the next one, every third of their
    /// TTL.
    ///
    /// If a key is not acquired, a lease is lost meanwhile, or the future is dropped, all leases are released
    /// in the background, newest first: [`Lock::cleaned_up`] waits for that.
    ///
    /// # What it does not promise
    ///
    /// - The keys are not granted at one instant: others see some of them locked before the last one is.
    /// - One token does not stand for another key: send with each write the token of the key that guards it
    ///   ([`Handles::fence`]).
    /// - All writes or none: of two writes, the first may be accepted and the second refused. A resource that
    ///   must take both or none needs a transaction.
    /// - A program that acquires another key while it holds these leaves the order, and can deadlock until a
    ///   deadline passes. The same holds for two programs whose keys have other names for one resource.
    ///
    /// # Errors
    ///
    /// [`AcquireAllError`] names the key that failed. An empty list of keys and a key that is given twice are
    /// refused before anything is sent.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, _| {
    /// use std::time::Duration;
    ///
    /// use dlock::{Cap, LockKey};
    ///
    /// let (from, to) = (LockKey::new("accounts", "7")?, LockKey::new("accounts", "3")?);
    /// let deadline = lock.deadline_in(Duration::from_secs(5));
    /// let accounts = lock.acquire_all(&[from.clone(), to.clone()], deadline).await?;
    /// let transfer = async {
    ///     for key in [&from, &to] {
    ///         println!("write {key} with token {}", accounts.fence(key).unwrap());
    ///     }
    /// };
    /// accounts.while_held(Cap(Duration::from_secs(60)), transfer).await?;
    /// accounts.release().await?;
    /// # Ok(()) });
    /// ```
    pub async fn acquire_all(
        &self,
        keys: &[LockKey],
        deadline: Instant,
    ) -> Result<Handles<B>, AcquireAllError> {
        let runtime = self.context().runtime();
        let keys = in_order(keys)?;
        let lost = |lost| {
            reached!(runtime, lease_lost_while_waiting);
            lost_meanwhile(lost)
        };
        let (mut handles, mut renewals) = (Handles::none(), Renewals::default());
        for key in keys {
            let acquired = renewals.beside(self.acquire(key, deadline)).await.map_err(lost)?;
            sometimes!(runtime, gave_up_with_others_held, acquired.is_err() && !handles.is_none());
            let handle =
                acquired.map_err(|source| AcquireAllError::NotAcquired { key: key.clone(), source })?;
            renewals.add(handle.held(), UNTIL_THE_DEADLINE);
            handles.push(handle);
        }
        match handles.all().iter().find(|handle| handle.remaining() <= self.options().min_validity) {
            None => Ok(handles),
            Some(late) => {
                let (key, source) = (late.key().clone(), AcquireError::Late);
                Err(AcquireAllError::NotAcquired { key, source })
            }
        }
    }
}

/// Returns the keys in the order in which everybody acquires them: that of [`LockKey`], by name.
fn in_order(keys: &[LockKey]) -> Result<BTreeSet<&LockKey>, AcquireAllError> {
    let mut ordered = BTreeSet::new();
    for key in keys {
        if !ordered.insert(key) {
            return Err(AcquireAllError::Duplicate { key: key.clone() });
        }
    }
    if ordered.is_empty() { Err(AcquireAllError::NoKey) } else { Ok(ordered) }
}

/// Returns the error of a lease that ended while a later key was waited for. Nobody else can have released
/// it: the lock was closed.
fn lost_meanwhile(KeyLostError { key, source }: KeyLostError) -> AcquireAllError {
    match source {
        LostError::Released => AcquireAllError::NotAcquired { key, source: AcquireError::Closed },
        source => AcquireAllError::Lost(KeyLostError { key, source }),
    }
}

probes! {
    /// An acquire of several keys failed, and releases those that it had acquired.
    sometimes gave_up_with_others_held;
    /// A lease was lost while a later one of several keys was waited for.
    reached lease_lost_while_waiting;
}
