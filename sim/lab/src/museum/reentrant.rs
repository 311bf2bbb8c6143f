//! B21: a reentrant acquire makes a token of its own. The inner section writes with a token above that of the
//! outer one, whose own write after it is then refused although its lease is valid.
//!
//! On Redis it increments the counter. On etcd and ZooKeeper it writes its key again: the revision or the
//! transaction of that write is the token.
//!
//! Source: Redisson's `RFencedLock`; on etcd and ZooKeeper locks whose token is the `mod_revision` or the
//! `mzxid` of their key.

use std::future::Future;

use crate::kit::{Faultless, Hands, WorkerMistake, rounds_with};
use crate::{Options, ReleaseMode, System, WorkerMode, Workplace};
use dlock::{AnyBackend, FencingToken, Handle, Lock, LockKey};
use futures_util::future::BoxFuture;
use sim::world::runtime::SimRuntime;

/// Works all rounds of a worker whose inner sections have tokens of their own.
pub(super) fn reentrant(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match place.options.system {
        System::ETCD => rounds_with::<Reentrant<PutAgain>>(place),
        System::ZOOKEEPER => rounds_with::<Reentrant<SetAgain>>(place),
        _ => rounds_with::<Reentrant<Counted>>(place),
    }
}

/// Works all rounds of a worker whose sections share one token.
pub(super) fn shared(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    rounds_with::<Faultless>(place)
}

/// Counts the sections itself, and gives each a token.
struct Reentrant<T>(std::marker::PhantomData<fn() -> T>);

/// The source of the tokens of inner sections.
trait Inner: Send + Sync + 'static {
    /// Returns the token of a section inside that of `outer`; `None` without an answer.
    fn token(
        hands: &Hands,
        outer: &Handle<AnyBackend<SimRuntime>>,
    ) -> impl Future<Output = Option<u64>> + Send;
}

/// The next number of the counter of Redis.
struct Counted;

/// The revision of etcd at which the outer section's key is put again.
struct PutAgain;

/// The transaction of ZooKeeper in which the outer section's data are set again.
struct SetAgain;

impl Inner for Counted {
    async fn token(hands: &Hands, outer: &Handle<AnyBackend<SimRuntime>>) -> Option<u64> {
        let mut command = redis::cmd("INCR");
        hands.wire.ask::<u64>(command.arg(outer.key().fence_key())).await.ok()
    }
}

impl Inner for PutAgain {
    async fn token(hands: &Hands, outer: &Handle<AnyBackend<SimRuntime>>) -> Option<u64> {
        hands.etcd.put_again(outer.key(), outer.owner()).await.ok()
    }
}

impl Inner for SetAgain {
    async fn token(hands: &Hands, outer: &Handle<AnyBackend<SimRuntime>>) -> Option<u64> {
        hands.zookeeper.set_again(outer.key(), outer.owner(), hands.deadline()).await.ok().flatten()
    }
}

impl<T: Inner> WorkerMistake for Reentrant<T> {
    async fn nest(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        let (owner, outer) = (handle.owner().clone(), handle.fence());
        hands.put_numbered(&owner, outer, 1).await;
        let inner = T::token(hands, &handle).await;
        // Without an answer, the inner section is not entered.
        if let Some(inner) = inner.and_then(FencingToken::new) {
            hands.toil().await;
            hands.put_numbered(&owner, inner, 1).await;
        }
        hands.put_numbered(&owner, outer, 2).await;
        drop(section);
        let _ = handle.release().await;
    }
}

/// Makes all workers that lock one key nest their sections.
pub(super) fn nest_sections(options: &mut Options) {
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        worker.mode = WorkerMode::new("reentrant");
        (worker.writes, worker.release) = (1, ReleaseMode::default());
    }
}
