//! Handles and locks move between tasks and threads, with each backend; so do the futures of their calls.
#![cfg(all(feature = "redis", feature = "etcd", feature = "zookeeper", feature = "tokio"))]

use std::time::Duration;

use dlock::etcd::Etcd;
use dlock::redis::Redis;
use dlock::redlock::Redlock;
use dlock::zookeeper::ZooKeeper;
use dlock::{AnyBackend, Backend, Cap, Handle, Instant, Lock, LockKey, Request, TokioRuntime};

fn moves<T: Send>(_: T) {}
fn is_shared<T: Send + Sync + 'static>() {}

/// Never called: it compiles only if each future may move to another thread.
#[allow(dead_code, reason = "the compiler checks it")]
fn futures_move<B: Backend>(lock: &Lock<B>, handle: Handle<B>, key: &LockKey, deadline: Instant) {
    let ttl = Duration::from_secs(1);
    moves(lock.acquire(key, deadline));
    moves(lock.try_acquire(key));
    moves(lock.request(key).ttl(ttl).acquire(deadline));
    moves(lock.request(key).ttl(ttl).try_acquire());
    moves(lock.close(deadline));
    moves(lock.cleaned_up(deadline));
    moves(handle.lost());
    moves(handle.low());
    moves(handle.renew());
    moves(handle.renew_for(ttl));
    moves(handle.while_held(Cap(ttl), async {}));
    moves(handle.release());
}

fn types_are_shared<B: Backend>() {
    is_shared::<Lock<B>>();
    is_shared::<Handle<B>>();
    is_shared::<Request<'static, B>>();
}

#[test]
fn locks_and_handles_are_send_and_sync() {
    types_are_shared::<Redis<TokioRuntime>>();
    types_are_shared::<Redlock<TokioRuntime>>();
    types_are_shared::<Etcd<TokioRuntime>>();
    types_are_shared::<ZooKeeper<TokioRuntime>>();
    types_are_shared::<AnyBackend<TokioRuntime>>();
    #[cfg(feature = "blocking")]
    {
        is_shared::<dlock::blocking::Lock>();
        is_shared::<dlock::blocking::Handle>();
    }
}
