//! The workers of a run: the real lock library and the real HTTP client, on the simulated world.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dlock::etcd::{Etcd, EtcdLockService, EtcdOptions};
use dlock::redis::{self, Redis, TokenSource};
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::zookeeper::{ClientOptions, ZooKeeper};
use dlock::{AcquireError, Backend, DriftMargin, Handle, Lock, LockKey, Options, Runtime};
use resource::client::{Client, Retry};
use resource::worker::{Job, Pauses, Reading, Step, Worker};

use super::cluster::{Cluster, LOCK_ADDRESS, RESOURCE_ADDRESS};
use super::update;
use crate::mutants::GetThenDel;
use crate::mutants::lock::MutantLock;
use crate::mutants::plain_redlock::PlainRedlock;
use crate::schedule::{
    ReadMode, Recipe, ReleaseMode, Schedule, System, Tokens, Waiting, Worker as Spec, WorkerMode,
};
use crate::world::process::ProcessId;
use crate::world::runtime::SimRuntime;

/// What makes a worker pause: a fault that struck in the step's event takes hold here.
#[derive(Clone)]
pub(super) struct Yields(pub(super) SimRuntime);

impl Pauses for Yields {
    async fn at(&self, _: Step) {
        self.0.yield_now().await;
    }
}

/// The main task of a worker: all its rounds, then the word that it is done.
pub(super) async fn main(cluster: Arc<Cluster>, id: ProcessId, schedule: Arc<Schedule>, number: usize) {
    let spec = &schedule.workers[number];
    let runtime = SimRuntime::new(cluster.world(), id);
    runtime.sleep_until(runtime.now() + spec.starts.duration()).await;
    let hand = Hand { cluster: &cluster, runtime: &runtime, schedule: &schedule, spec };
    match schedule.system {
        _ if spec.mode == WorkerMode::Cas => apart(update::rounds(&runtime, &schedule, spec)),
        System::Redis => apart(on_redis(hand)),
        System::Redlock => apart(on_redlock(hand)),
        System::Etcd => apart(on_etcd(hand, number)),
        System::ZooKeeper => apart(on_zookeeper(hand, number)),
    }
    .await;
    cluster.finished(id);
}

/// Keeps `future`, and the stack that its polls need, out of whoever awaits it: a run would touch as much memory as the largest
/// of its siblings needs.
#[inline(never)]
fn apart<'a, T>(future: impl Future<Output = T> + Send + 'a) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}

/// A worker, and what it works with.
#[derive(Clone, Copy)]
struct Hand<'a> {
    cluster: &'a Cluster,
    runtime: &'a SimRuntime,
    schedule: &'a Schedule,
    spec: &'a Spec,
}

async fn on_redis(hand: Hand<'_>) {
    let redis = Redis::new(hand.runtime.clone(), LOCK_ADDRESS);
    let redis = redis.with_tokens(tokens(hand.schedule)).with_waiting(waiting(hand.schedule));
    match (hand.cluster.lock_mutant(), hand.spec.release) {
        (Some(mutant), _) => {
            let drift = options(hand.schedule, hand.spec).drift;
            apart(rounds(hand, MutantLock::new(redis, LOCK_ADDRESS, mutant, drift))).await;
        }
        (None, ReleaseMode::GetDel) => apart(rounds(hand, GetThenDel::new(redis, LOCK_ADDRESS))).await,
        (None, ReleaseMode::Script | ReleaseMode::None) => rounds(hand, redis).await,
    }
}

async fn on_redlock(hand: Hand<'_>) {
    let nodes: Vec<_> = hand.schedule.servers().iter().map(|name| format!("{name}:6379")).collect();
    if let Some(mutant) = hand.cluster.lock_mutant() {
        return apart(rounds(hand, PlainRedlock::new(hand.runtime, &nodes, mutant))).await;
    }
    let mut options = RedlockOptions::default();
    options.tokens = tokens(hand.schedule);
    // Nodes that are refused are too few, or named twice: the schedule was validated.
    if let Ok(redlock) = Redlock::new(hand.runtime.clone(), &nodes, options) {
        rounds(hand, redlock).await;
    }
}

async fn on_etcd(hand: Hand<'_>, number: usize) {
    let members = members(hand.schedule, number, 2379);
    let options = EtcdOptions::new(hand.schedule.ttl_of(hand.spec).duration());
    // Members and a TTL that etcd can't use are refused: the schedule was validated.
    match hand.schedule.etcd.recipe {
        Recipe::Queue => {
            if let Ok(etcd) = Etcd::new(hand.runtime.clone(), &members, &options) {
                apart(rounds(hand, etcd)).await;
            }
        }
        Recipe::Service => {
            if let Ok(service) = EtcdLockService::new(hand.runtime.clone(), &members, &options) {
                apart(rounds(hand, service)).await;
            }
        }
    }
}

async fn on_zookeeper(hand: Hand<'_>, number: usize) {
    let members = members(hand.schedule, number, 2181);
    let mut options = ClientOptions::new(members, hand.schedule.ttl_of(hand.spec).duration());
    options.drift = self::options(hand.schedule, hand.spec).drift;
    rounds(hand, ZooKeeper::with_options(hand.runtime.clone(), options)).await;
}

/// The members of a cluster, as the worker `number` knows them: each begins with another one.
fn members(schedule: &Schedule, number: usize, port: u16) -> Vec<String> {
    let mut members: Vec<_> = schedule.servers().iter().map(|name| format!("{name}:{port}")).collect();
    let first = number % members.len().max(1);
    members.rotate_left(first);
    members
}

fn tokens(schedule: &Schedule) -> TokenSource {
    match schedule.redis.tokens {
        Tokens::Counter => TokenSource::Counter,
        Tokens::Time => TokenSource::ServerTime,
    }
}

fn waiting(schedule: &Schedule) -> redis::Waiting {
    match schedule.redis.waiting {
        Waiting::Polled => redis::Waiting::Polled,
        Waiting::Called => redis::Waiting::Called,
    }
}

async fn rounds<B: Backend<Runtime = SimRuntime>>(hand: Hand<'_>, backend: B) {
    let Hand { cluster, runtime, schedule, spec } = hand;
    // The schedule was validated: a key or a TTL that can't be used does not get here.
    let (Ok(key), Ok(lock)) = (lock_key(schedule.key_of(spec)), Lock::new(backend, options(schedule, spec)))
    else {
        return;
    };
    let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
    let worker = Worker::new(lock, client, Yields(runtime.clone()));
    let job = job(key, spec);
    for round in 0..spec.rounds {
        let mut acquire = Box::pin(worker.acquire(&job));
        let acquired = match spec.cancel_at.get(round as usize) {
            Some(pending) => drop_when_pending(runtime, *pending, acquire.as_mut()).await,
            None => cancellable(cluster, runtime, acquire.as_mut()).await,
        };
        drop(acquire);
        if let Some(Ok(handle)) = acquired {
            // A grant that can't be used ends in the events; the next round goes on.
            let _ = Box::pin(worker.hold(&job, handle)).await;
        }
        runtime.sleep_until(runtime.now() + spec.think.duration()).await;
    }
}

/// The key of a resource that a schedule writes `type:id`.
pub(super) fn lock_key(name: &str) -> Result<LockKey, dlock::KeyError> {
    let (kind, id) = name.split_once(':').unwrap_or(("resource", name));
    LockKey::new(kind, id)
}

/// The lock's options, as a schedule sets them.
pub(super) fn options(schedule: &Schedule, spec: &Spec) -> Options {
    let mut options = Options::new(schedule.ttl_of(spec).duration());
    options.instance = Some(spec.name.clone());
    if let Some(margin) = schedule.drift_margin {
        options.drift = DriftMargin { per_mille: 0, constant: margin.duration() };
    }
    options
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
async fn drop_when_pending<F: Future>(
    runtime: &SimRuntime,
    nth: u32,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    let mut pending = 0;
    let output = std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            pending += 1;
            if pending >= nth { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await;
    if output.is_none() {
        sent(runtime).await;
    }
    output
}

/// Completes when every task that was ready has had its turn. A client hands its request to a task of its connection; one
/// that is dropped before that task ran was never sent, and leaves nothing to clean up.
async fn sent(runtime: &SimRuntime) {
    runtime.sleep_until(runtime.now() + TURNS).await;
}

/// Some hundred turns of tasks, since madsim lets 50 to 100 ns pass with each; less than any segment is under way.
const TURNS: Duration = Duration::from_micros(50);

/// Runs an acquire until it ends, or a fault strikes that cancels it; the caller drops it then.
async fn cancellable<B: Backend>(
    cluster: &Cluster,
    runtime: &SimRuntime,
    mut acquire: Pin<&mut impl Future<Output = Result<Handle<B>, AcquireError>>>,
) -> Option<Result<Handle<B>, AcquireError>> {
    let output = std::future::poll_fn(|cx| {
        if cluster.poll_cancelled(runtime.process(), cx) {
            return Poll::Ready(None);
        }
        Pin::as_mut(&mut acquire).poll(cx).map(Some)
    })
    .await;
    if output.is_none() {
        sent(runtime).await;
    }
    output
}
