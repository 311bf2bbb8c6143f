//! R41: a process has one scope for all its requests. The second request finds the lock in the scope, and
//! goes in while the first one is inside.
//!
//! Source: reentrant locks whose owner is the process, or a thread on which several tasks run, such as one
//! of an asynchronous runtime.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use dlock::{AnyBackend, Lock, LockKey, Scope};
use futures_util::future::{BoxFuture, join};
use history::emit;
use sim::world::runtime::SimRuntime;

use crate::Workplace;
use crate::kit::{Hands, WorkerMistake, rounds_with};

/// Serves two requests at once, in one scope.
struct SharedScope;

/// Serves two requests at once, each in a scope of its own.
struct OwnScopes;

/// Works all rounds of a worker whose requests share one scope.
pub(super) fn shared(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    rounds_with::<SharedScope>(place)
}

/// Works all rounds of a worker whose requests have scopes of their own.
pub(super) fn own(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    rounds_with::<OwnScopes>(place)
}

impl WorkerMistake for SharedScope {
    async fn nest(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let (scope, inside, writes) = (lock.scope(), Inside::default(), AtomicU64::new(0));
        let [first, second] = [1, 2].map(|number| Request {
            hands,
            scope: &scope,
            key,
            number,
            inside: &inside,
            writes: &writes,
        });
        join(first.serve(), second.serve()).await;
    }
}

impl WorkerMistake for OwnScopes {
    async fn nest(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let (scopes, writes) = ([lock.scope(), lock.scope()], [AtomicU64::new(0), AtomicU64::new(0)]);
        let inside = Inside::default();
        let [first, second] = [0, 1].map(|index: usize| {
            let (scope, writes, number) = (&scopes[index], &writes[index], index + 1);
            Request { hands, scope, key, number, inside: &inside, writes }
        });
        join(first.serve(), second.serve()).await;
    }
}

/// The owners of the leases under which a request is inside.
type Inside = Mutex<BTreeSet<String>>;

/// A request to a process.
struct Request<'a> {
    hands: &'a Hands,
    scope: &'a Scope<AnyBackend<SimRuntime>>,
    key: &'a LockKey,
    /// 1 or 2.
    number: usize,
    inside: &'a Inside,
    /// The number of writes under the lease of the scope.
    writes: &'a AtomicU64,
}

impl Request<'_> {
    /// Works and writes in a critical section.
    async fn serve(self) {
        let Self { hands, key, number, .. } = self;
        let Ok(entered) = self.scope.acquire(key, hands.deadline()).await else { return };
        let (owner, token) = (entered.owner().as_str().to_owned(), entered.fence());
        // The section is that of the request: the owner of the lease does not tell the two apart.
        let section = format!("{}/{number}", entered.owner().prefix());
        emit!(SectionEntered { key: key.id_hash(), owner: section.as_str(), token: token.as_u64() });
        hands.process.always("one request a lease", self.change(|inside| inside.insert(owner.clone())));
        hands.toil().await;
        if entered.is_valid() {
            let write = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
            hands.put_numbered(entered.owner(), token, write).await;
        }
        self.change(|inside| inside.remove(&owner));
        emit!(SectionLeft {
            key: key.id_hash(),
            owner: section.as_str(),
            token: token.as_u64(),
            outcome: None::<&str>,
        });
        let _ = entered.leave().await;
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) -> bool {
        change(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
