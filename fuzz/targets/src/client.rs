//! A client of a lock server whose answers are the fuzzer's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dlock::{AnyBackend, ConnectOptions, Lock, LockKey, Options};

use crate::machine::Local;
use crate::world::Executor;

const TTL: Duration = Duration::from_secs(2);
/// The deadline of the acquire.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time after which the acquire, one renewal and the release must be over.
const OVER: Duration = Duration::from_secs(20);
/// The most timers that run while the client works.
const WAKES_MAX: usize = 10_000;

/// Acquires, renews and releases a lock on the servers of `url`, which send `answers` one by one, each after
/// the client waits, on its connections in turn.
///
/// # Panics
///
/// If a call is not over long after its deadline.
pub(crate) fn lock<'a>(url: &str, answers: impl IntoIterator<Item = &'a [u8]>) {
    let mut executor = Executor::new();
    let machine = Local::new(executor.world());
    let over = Arc::new(AtomicBool::new(false));
    let (runtime, url, done) = (machine.clone(), url.to_owned(), Arc::clone(&over));
    executor.world().spawn(async move {
        work(runtime, &url).await;
        done.store(true, Ordering::Relaxed);
    });
    executor.settle();
    let mut connections = machine.opened();
    for (turn, answer) in answers.into_iter().enumerate() {
        connections.extend(machine.opened());
        let count = connections.len().max(1);
        if let Some(connection) = connections.get(turn % count) {
            connection.send(answer);
        }
        executor.settle();
    }
    connections.iter().for_each(|connection| connection.finish());
    executor.advance(OVER, WAKES_MAX);
    assert!(over.load(Ordering::Relaxed), "the lock's calls go on long after their deadlines");
}

async fn work(runtime: Local, url: &str) {
    let options = Options::new(TTL);
    let Ok(backend) = AnyBackend::from_url(runtime, url, &options, &ConnectOptions::default()) else {
        return;
    };
    let (Ok(lock), Ok(key)) = (Lock::new(backend, options), LockKey::new("orders", "42")) else { return };
    let deadline = lock.deadline_in(PATIENCE);
    if let Ok(handle) = lock.acquire(&key, deadline).await {
        // Any outcome will do: the server lies.
        let _ = handle.renew().await;
        let _ = handle.release().await;
    }
}
