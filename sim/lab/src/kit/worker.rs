//! A worker that acquires, works, checks its lease, writes and releases as a correct one does, except where
//! its mistake changes it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dlock::election::Election;
use dlock::{
    AnyBackend, Cap, Entered, FencingToken, Handle, Instant, Lock, LockKey, Owner, Runtime, Scope, timeout_at,
};
use futures_util::future::BoxFuture;
use resource::client::{Client, Retry};
use resource::fence::{Beside, Guard, WriteSeq};
use resource::store::Write;
use resource::{OwnerToken, ResourceKey};
use sim::Process;
use sim::faults::Call;
use sim::sim::Section;
use sim::world::runtime::SimRuntime;

use super::jobs::jobs;
use super::ticks::firings_on;
use super::{Faultless, etcd, zookeeper};
use crate::wire::Wire;
use crate::{Worker, Workplace};

/// A mistake: it replaces one or more of the correct steps of a worker.
pub trait WorkerMistake: Send + Sync + 'static {
    /// Returns the lock that guards the resource `key`. Correct: its own.
    fn lock_key(key: LockKey) -> LockKey {
        key
    }

    /// Returns the order in which `keys` are locked together, which a schedule names in another one. Correct:
    /// the order of their names, the same for all workers.
    fn order(mut keys: Vec<LockKey>) -> Vec<LockKey> {
        keys.sort();
        keys
    }

    /// Makes the writes of a round. Correct: one, with the token of the grant.
    fn write(hands: &Hands, handle: &Handle<AnyBackend<SimRuntime>>) -> impl Future<Output = ()> + Send {
        hands.put(handle, handle.fence())
    }

    /// Makes the writes of one of several keys, of which `first` was locked first. Correct: as of one key.
    fn write_one(
        hands: &Hands,
        handle: &Handle<AnyBackend<SimRuntime>>,
        first: &Handle<AnyBackend<SimRuntime>>,
    ) -> impl Future<Output = ()> + Send {
        let _ = first;
        Self::write(hands, handle)
    }

    /// Observes an election until its rounds are over. Correct: the library's observer, one term a round.
    fn observe(hands: &Hands, election: Election<AnyBackend<SimRuntime>>) -> impl Future<Output = ()> + Send {
        hands.observe(election)
    }

    /// Runs a round of nested sections. Correct: they share one lease, in a scope of the round; the last one
    /// to leave releases it.
    fn nest(
        hands: &Hands,
        lock: &Lock<AnyBackend<SimRuntime>>,
        key: &LockKey,
    ) -> impl Future<Output = ()> + Send {
        hands.round_of_nested(lock, key)
    }

    /// Reads, and then writes, in a round of a lock for readers and a writer. Correct: under two leases, one
    /// after the other.
    fn upgrade(
        hands: &Hands,
        lock: &Lock<AnyBackend<SimRuntime>>,
        key: &LockKey,
    ) -> impl Future<Output = ()> + Send
    where
        Self: Sized,
    {
        async {
            let Some((reader, section)) = hands.enter_to_read(lock, key).await else { return };
            drop(section);
            let _ = reader.release().await;
            hands.round::<Self>(lock, key).await;
        }
    }

    /// Runs a flight. Correct: of all workers that need a result at once, one computes it.
    fn fly(
        hands: &Hands,
        lock: &Lock<AnyBackend<SimRuntime>>,
        key: &LockKey,
    ) -> impl Future<Output = ()> + Send {
        async { hands.flights().round(lock, key).await }
    }

    /// Ends a round. Correct: the worker leaves its section, then releases.
    fn end(
        hands: &Hands,
        handle: Handle<AnyBackend<SimRuntime>>,
        section: Section,
    ) -> impl Future<Output = ()> + Send {
        let _ = hands;
        async {
            drop(section);
            let _ = handle.release().await;
        }
    }
}

impl WorkerMistake for Faultless {}

/// The process, the clients and the resource of a worker.
#[derive(Clone)]
pub struct Hands {
    /// The process of the worker.
    pub process: Process,
    /// The client of the resource.
    pub client: Arc<Client<SimRuntime>>,
    /// Sends commands to the first server, if that is a Redis.
    pub wire: Wire<SimRuntime>,
    /// The addresses of the lock servers.
    pub servers: Vec<String>,
    /// Sends requests to the servers, if they are members of etcd.
    pub etcd: etcd::Plain,
    /// Sends requests to the servers, if they are a ZooKeeper ensemble.
    pub zookeeper: zookeeper::Plain,
    /// The key of the resource.
    pub resource: ResourceKey,
    pub(super) spec: Worker,
    /// True if others may hold the lock at the same time.
    pub(super) has_permits: bool,
}

/// The longest time for which a lease is renewed: longer than any run.
pub(super) const RENEW_CAP: Cap = Cap(Duration::from_secs(3600));

/// Works all rounds of a worker with the mistake `M`.
pub fn rounds_with<M: WorkerMistake>(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    rounds_on::<M>(place, place.library_lock()?)
}

/// Works all rounds of a worker with the mistake `M` on `lock`, which may have a mistake of its own.
pub fn rounds_on<M: WorkerMistake>(
    place: &Workplace<'_>,
    lock: AnyBackend<SimRuntime>,
) -> Option<BoxFuture<'static, ()>> {
    if place.worker.fires() {
        return firings_on(place, lock, |ticks| ticks);
    }
    if place.worker.runs_jobs() {
        return jobs(place);
    }
    let lock = Lock::new(lock, place.lock.clone()).ok()?;
    let key = |name: &str| name.split_once(':').and_then(|(kind, id)| LockKey::new(kind, id).ok());
    let keys: Vec<LockKey> =
        place.options.keys_of(place.worker).into_iter().map(key).collect::<Option<_>>()?;
    let key = keys.first()?.clone();
    let hands = Hands {
        process: place.process.clone(),
        client: Arc::new(Client::new(place.runtime.clone(), place.resource)),
        wire: Wire::new(place.runtime.clone(), place.servers.first()?),
        servers: place.servers.clone(),
        etcd: etcd::Plain::new(place.runtime.clone(), &place.servers),
        zookeeper: zookeeper::Plain::new(place.runtime.clone(), &place.servers, place.lock.ttl),
        resource: ResourceKey::try_from(&key).ok()?,
        spec: place.worker.clone(),
        has_permits: place.lock.permits > 1,
    };
    Some(Box::pin(async move {
        let key = M::lock_key(key);
        if hands.spec.observes() {
            // Without an election there is nothing to observe: no valid schedule has such a lock.
            let Ok(election) = Election::new(lock, key, RENEW_CAP) else { return };
            return M::observe(&hands, election).await;
        }
        for _ in 0..hands.spec.rounds {
            match (hands.spec.locks_several(), hands.spec.nests()) {
                (true, _) => hands.round_of_several::<M>(&lock, M::order(keys.clone())).await,
                (false, Some(_)) => M::nest(&hands, &lock, &key).await,
                (false, None) if hands.spec.flies() => M::fly(&hands, &lock, &key).await,
                (false, None) if hands.spec.upgrades() => M::upgrade(&hands, &lock, &key).await,
                (false, None) => hands.round::<M>(&lock, &key).await,
            }
            hands.process.sleep(hands.spec.think.duration()).await;
        }
    }))
}

impl Hands {
    /// Writes under the lease of `handle`, with this token, beside the permits that were live at the grant.
    pub async fn put(&self, handle: &Handle<AnyBackend<SimRuntime>>, token: FencingToken) {
        // A lock has at most as many permits as a set may have tokens.
        let beside = Beside::new(handle.beside().iter().copied()).unwrap_or_default();
        self.put_guarded(handle.owner(), token, Guard::token(token), &beside).await;
    }

    /// Writes as this owner, with this token.
    pub async fn put_as(&self, owner: &Owner, token: FencingToken) {
        self.put_guarded(owner, token, Guard::token(token), &Beside::default()).await;
    }

    /// Makes the write numbered `number` of this owner, with this token.
    pub async fn put_numbered(&self, owner: &Owner, token: FencingToken, number: u64) {
        let guard = Guard::Token { token, seq: WriteSeq::new(number) };
        self.put_guarded(owner, token, guard, &Beside::default()).await;
    }

    async fn put_guarded(&self, owner: &Owner, token: FencingToken, guard: Guard, beside: &Beside) {
        let write = Write {
            guard,
            owner: OwnerToken::new(owner.as_str()).ok(),
            body: Bytes::from(format!("{} {token}", self.spec.name)),
        };
        let (client, deadline) = (self.client.beside(beside), self.deadline());
        // Ignored: the events of the resource show the result.
        if self.has_permits {
            // A retry that comes after a write of another permit is refused.
            let _ = client.put(&self.resource, &write, deadline).await;
        } else {
            let _ = client.put_with_retry(&self.resource, &write, deadline, Retry::default()).await;
        }
    }

    /// Passes a point, and lets faults that strike there take effect.
    pub async fn reach(&self, point: &str) {
        self.process.point(point);
        self.process.runtime().yield_now().await;
    }

    /// Waits for one new term a round.
    async fn observe(&self, election: Election<AnyBackend<SimRuntime>>) {
        let mut observer = election.observe();
        let end = self.observing_until();
        for _ in 0..self.spec.rounds {
            let next = timeout_at(&self.process.runtime(), end, pin!(observer.next())).await;
            match next {
                Ok(Ok(term)) => self.saw(election.key(), &term.leader, term.term.as_u64()),
                Ok(Err(error)) if error.is_passing() => {}
                _ => return,
            }
        }
    }

    /// Returns when an observer ends at the latest.
    pub fn observing_until(&self) -> Instant {
        self.process.runtime().now() + self.spec.deadline.duration() * self.spec.rounds
    }

    /// Records that an observer saw `leader` lead in `term`.
    pub fn saw(&self, key: &LockKey, leader: &str, term: u64) {
        history::emit!(TermObserved { key: key.id_hash(), owner: leader, token: term });
    }

    /// Acquires `key` and enters its section. Returns `None` if the acquire fails or is dropped, which the
    /// history shows; the next round goes on.
    pub async fn enter(
        &self,
        lock: &Lock<AnyBackend<SimRuntime>>,
        key: &LockKey,
    ) -> Option<(Handle<AnyBackend<SimRuntime>>, Section)> {
        let acquire = lock.acquire(key, self.deadline());
        let handle = self.process.cancellable(Call::Acquire, acquire).await?.ok()?;
        let section = self.begin(&handle);
        Some((handle, section))
    }

    /// As [`Hands::enter`], for reading; then works.
    pub async fn enter_to_read(
        &self,
        lock: &Lock<AnyBackend<SimRuntime>>,
        key: &LockKey,
    ) -> Option<(Handle<AnyBackend<SimRuntime>>, Section)> {
        let acquire = lock.acquire_shared(key, self.deadline());
        let reader = self.process.cancellable(Call::Acquire, acquire).await?.ok()?;
        let section = self.begin(&reader);
        self.toil().await;
        Some((reader, section))
    }

    /// Renews the lease of a grant if the worker does, and enters its section.
    pub(super) fn begin(&self, handle: &Handle<AnyBackend<SimRuntime>>) -> Section {
        if self.spec.renew || self.spec.leads() {
            handle.keep_alive(RENEW_CAP);
        }
        self.process.section_with_token(handle.key().name(), handle.fence().as_u64())
    }

    /// Returns the deadline of a request that begins now.
    pub fn deadline(&self) -> Instant {
        self.process.now() + self.spec.deadline.duration()
    }

    /// Acquires the lock, works, writes and releases.
    pub async fn round<M: WorkerMistake>(&self, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some((handle, section)) = self.enter(lock, key).await else { return };
        self.work::<M>(&handle, &handle).await;
        M::end(self, handle, section).await;
    }

    /// Does the work of a section.
    pub async fn toil(&self) {
        self.process.sleep(self.spec.work.duration()).await;
        self.reach("worked").await;
    }

    /// Works and writes under `handle`, one of the leases of a round, of which `first` is the first.
    pub(super) async fn work<M: WorkerMistake>(
        &self,
        handle: &Handle<AnyBackend<SimRuntime>>,
        first: &Handle<AnyBackend<SimRuntime>>,
    ) {
        self.toil().await;
        if handle.is_valid() || !self.spec.check {
            M::write_one(self, handle, first).await;
        }
    }

    async fn round_of_nested(&self, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let scope = lock.scope();
        let acquire = scope.acquire(key, self.deadline());
        let Some(Ok(outer)) = self.process.cancellable(Call::Acquire, acquire).await else { return };
        let section = self.begin(&outer);
        self.write_around(&scope, &outer, 1).await;
        drop(section);
        let _ = outer.leave().await;
    }

    /// Writes in the section at `level`, counted from 1, before and after the section inside it.
    async fn write_around(
        &self,
        scope: &Scope<AnyBackend<SimRuntime>>,
        entered: &Entered<AnyBackend<SimRuntime>>,
        level: u32,
    ) {
        let depth = self.spec.nests().unwrap_or(1);
        if level == depth {
            self.toil().await;
            return self.put_checked(entered, level).await;
        }
        self.put_checked(entered, level).await;
        let Ok(inner) = scope.acquire(entered.key(), self.deadline()).await else { return };
        Box::pin(self.write_around(scope, &inner, level + 1)).await;
        let _ = inner.leave().await;
        self.put_checked(entered, 2 * depth - level).await;
    }

    async fn put_checked(&self, handle: &Handle<AnyBackend<SimRuntime>>, number: u32) {
        if handle.is_valid() || !self.spec.check {
            self.put_numbered(handle.owner(), handle.fence(), u64::from(number)).await;
        }
    }
}
