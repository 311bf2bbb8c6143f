//! The lock: a worker acquires, reads, works, checks its lease, writes to the resource and releases.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use dlock::etcd::{Etcd, EtcdOptions};
use dlock::redis::{self, Redis, RedisOptions, TokenSource};
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{Backend, Lock, LockKey, Runtime};
use futures_util::future::BoxFuture;
use resource::client::{Client, Retry};
use resource::worker::{Job, Reading, Worker};

use super::super::hosts::LOCK_NAME;
use super::super::options::Options;
use super::super::servers::{Recipe, System, Tokens, Waiting};
use super::super::worker::{ReadMode, ReleaseMode, Worker as Spec};
use super::apart;
use super::seat::{RESOURCE_ADDRESS, Seat, Yields, lock_key};
use crate::etcd_lock_service::EtcdLockService;
use crate::mutants::GetThenDel;
use crate::mutants::lock::MutantLock;
use crate::mutants::plain_redlock::PlainRedlock;
use crate::world::runtime::SimRuntime;

/// All rounds of a worker, on the lock of the schedule's system.
pub(super) fn rounds(seat: Seat<'_>) -> BoxFuture<'_, ()> {
    match seat.options.system {
        System::Redis => apart(on_redis(seat)),
        System::Redlock => apart(on_redlock(seat)),
        System::Etcd => apart(on_etcd(seat)),
        System::ZooKeeper => apart(on_zookeeper(seat)),
    }
}

async fn on_redis(seat: Seat<'_>) {
    let address = format!("{LOCK_NAME}:6379");
    let mut options = RedisOptions::default();
    options.tokens = tokens(seat.options);
    options.waiting = waiting(seat.options);
    let Ok(redis) = Redis::new(seat.process.runtime(), &address, options) else { return };
    match (seat.mutant, seat.spec.release) {
        (Some(mutant), _) => {
            let drift = seat.lock_options().drift;
            apart(work(seat, MutantLock::new(redis, &address, mutant, drift))).await;
        }
        (None, ReleaseMode::GetDel) => apart(work(seat, GetThenDel::new(redis, &address))).await,
        (None, ReleaseMode::Script | ReleaseMode::None) => work(seat, redis).await,
    }
}

async fn on_redlock(seat: Seat<'_>) {
    let nodes: Vec<_> = seat.options.servers().iter().map(|name| format!("{name}:6379")).collect();
    if let Some(mutant) = seat.mutant {
        return apart(work(seat, PlainRedlock::new(&seat.process.runtime(), &nodes, mutant))).await;
    }
    let mut options = RedlockOptions::default();
    options.tokens = tokens(seat.options);
    // Nodes that are refused are too few, or named twice: the schedule was validated.
    if let Ok(redlock) = Redlock::new(seat.process.runtime(), &nodes, options) {
        work(seat, redlock).await;
    }
}

async fn on_etcd(seat: Seat<'_>) {
    let members = seat.members(2379);
    let session = seat.options.ttl_of(seat.spec).duration();
    match seat.options.etcd.recipe {
        // Members and a TTL that etcd can't use are refused: the schedule was validated.
        Recipe::Queue => {
            if let Ok(etcd) = Etcd::new(seat.process.runtime(), &members, EtcdOptions::new(session)) {
                apart(work(seat, etcd)).await;
            }
        }
        Recipe::Service => {
            let service = EtcdLockService::new(seat.process.runtime(), &members, session);
            apart(work(seat, service)).await;
        }
    }
}

async fn on_zookeeper(seat: Seat<'_>) {
    let options = ZooKeeperOptions::new(seat.options.ttl_of(seat.spec).duration());
    // Members and a TTL that ZooKeeper can't use are refused: the schedule was validated.
    if let Ok(zookeeper) = ZooKeeper::new(seat.process.runtime(), &seat.members(2181), options) {
        work(seat, zookeeper).await;
    }
}

fn tokens(options: &Options) -> TokenSource {
    match options.redis.tokens {
        Tokens::Counter => TokenSource::Counter,
        Tokens::Time => TokenSource::ServerTime,
    }
}

fn waiting(options: &Options) -> redis::Waiting {
    match options.redis.waiting {
        Waiting::Polled => redis::Waiting::Polled,
        Waiting::Called => redis::Waiting::Called,
    }
}

async fn work<B: Backend<Runtime = SimRuntime>>(seat: Seat<'_>, backend: B) {
    let Seat { process, options, spec, .. } = seat;
    // The schedule was validated: a key or a TTL that can't be used does not get here.
    let (Ok(key), Ok(lock)) = (lock_key(options.key_of(spec)), Lock::new(backend, seat.lock_options()))
    else {
        return;
    };
    let runtime = process.runtime();
    let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
    let worker = Worker::new(lock, client, Yields(runtime.clone()));
    let job = job(key, spec);
    for round in 0..spec.rounds {
        let mut acquire = Box::pin(worker.acquire(&job));
        let acquired = match spec.cancel_at.get(round as usize) {
            Some(pending) => drop_when_pending(*pending, acquire.as_mut()).await,
            None => process.poll_cancellable(acquire.as_mut()).await,
        };
        if acquired.is_none() {
            requests_are_sent(&runtime).await;
        }
        drop(acquire);
        if let Some(Ok(handle)) = acquired {
            // A grant that can't be used ends in the events; the next round goes on.
            let _ = Box::pin(worker.hold(&job, handle)).await;
        }
        seat.think().await;
    }
}

fn job(key: LockKey, spec: &Spec) -> Job {
    Job {
        key,
        acquire_timeout: spec.deadline.duration(),
        reading: match spec.read {
            ReadMode::None => Reading::None,
            ReadMode::Plain => Reading::Plain,
            ReadMode::Fenced => Reading::Fenced,
        },
        work: spec.work.duration(),
        check: spec.check,
        renew: spec.renew.then(|| spec.renew_cap.map_or(RENEW_CAP, |cap| cap.duration())),
        writes: u64::from(spec.writes),
        retry: spec.retry_put.then(Retry::default),
        answer_timeout: spec.deadline.duration(),
        release: spec.release != ReleaseMode::None,
    }
}

/// The longest time that a lease is renewed, if the schedule names none: longer than any run.
const RENEW_CAP: Duration = Duration::from_secs(3600);

/// Runs `future` until it ends, or gives it up when it has been pending for the `nth` time; the caller drops it then.
async fn drop_when_pending<F: Future>(nth: u32, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut pending = 0;
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            pending += 1;
            if pending >= nth { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

/// Completes when every task that was ready has had its turn. A client hands its request to a task of its connection; one
/// that is dropped before that task ran was never sent, and leaves nothing to clean up.
async fn requests_are_sent(runtime: &SimRuntime) {
    runtime.sleep_until(runtime.now() + TURNS).await;
}

/// Some hundred turns of tasks, since madsim lets 50 to 100 ns pass with each; less than any segment is under way.
const TURNS: Duration = Duration::from_micros(50);
