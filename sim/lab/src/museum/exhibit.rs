//! The parts of a mutant: a lock on one or more systems, a worker, the resource, or the options of the
//! servers.

use dlock::AnyBackend;
use dlock::etcd::Etcd;
use dlock::redis::Redis;
use dlock::redlock::Redlock;
use dlock::zookeeper::ZooKeeper;
use futures_util::future::BoxFuture;
use resource::http::Config;
use sim::Span;
use sim::servers::resource::ResourceHost;
use sim::world::runtime::SimRuntime;

use super::plain_redlock::{Flaw, on_redlock};
use super::upgrade_by_waiting;
use crate::kit::{
    Faultless, LockMistake, ResourceMistake, WorkerMistake, lock_with, resource_with, rounds_with,
};
use crate::{Lab, Options, StoredLock, System, Tokens, Worker, Workplace};

type MakeLock = Box<dyn Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync>;
type MakeWorker = fn(&Workplace<'_>) -> Option<BoxFuture<'static, ()>>;
type MakeResource = fn(&Options, Config) -> ResourceHost;
type Layout = fn(System, &str) -> StoredLock;
type Deploy = fn(&mut Options);

/// A mistake and its twin, which is the same without the mistake. Every schedule that convicts the mistake
/// must acquit the twin. On a system without such a lock, the system's own lock is used.
#[derive(Default)]
pub(super) struct Exhibit {
    mistaken: Parts,
    twin: Parts,
    deploy: Option<Deploy>,
    /// The systems on which a mistake outside the lock can be shown; all that have a lock if empty.
    only_on: Vec<System>,
    /// True if the lock counts its own grants: a schedule can't give it tokens by time.
    counts: bool,
    /// Changes drawn options so that the mistake can be made.
    suits: Option<Deploy>,
}

/// The parts that replace those of a laboratory.
#[derive(Default)]
struct Parts {
    locks: Vec<(System, MakeLock)>,
    worker: Option<MakeWorker>,
    resource: Option<MakeResource>,
    /// The form in which locks on etcd and ZooKeeper are stored, if it is not the library's.
    stored: Option<Layout>,
}

impl Exhibit {
    /// Creates an exhibit of a lock on one Redis.
    pub(super) fn redis<M: LockMistake>() -> Self {
        Self::default().and(
            System::REDIS,
            lock_with::<Redis<SimRuntime>, M>,
            lock_with::<Redis<SimRuntime>, Faultless>,
        )
    }

    /// Creates an exhibit of a lock on one Redis whose keys share counters. In a schedule with other tokens
    /// the lock has no mistake, so that a schedule that shows one keeps its tokens when it is shrunk.
    pub(super) fn shared_counters<M: LockMistake>() -> Self {
        let make = |place: &Workplace<'_>| match place.options.redis.tokens == Tokens::Shared {
            true => lock_with::<Redis<SimRuntime>, M>(place),
            false => lock_with::<Redis<SimRuntime>, Faultless>(place),
        };
        Self::default().and(System::REDIS, make, lock_with::<Redis<SimRuntime>, Faultless>)
    }

    /// Sets the twin on one Redis, for a mistake whose correct form needs more than the library's calls.
    pub(super) fn twin<M: LockMistake>(mut self) -> Self {
        self.twin.locks.retain(|(system, _)| *system != System::REDIS);
        self.twin.locks.push((System::REDIS, Box::new(lock_with::<Redis<SimRuntime>, M>)));
        self
    }

    /// Marks that the lock counts its tokens itself.
    pub(super) fn counting(self) -> Self {
        Self { counts: true, ..self }
    }

    /// Changes drawn options by `suit`.
    pub(super) fn suited(self, suit: Deploy) -> Self {
        Self { suits: Some(suit), ..self }
    }

    /// Makes the lock a semaphore of two permits, in the form that has permits.
    pub(super) fn of_permits(self) -> Self {
        self.suited(|options| {
            options.permits = Some(2);
            (options.etcd, options.cron) = Default::default();
            options.workers.iter_mut().for_each(with_any_lock);
        })
    }

    /// Makes the lock one for readers and a writer. The first worker writes, and the others read.
    pub(super) fn of_readers(self) -> Self {
        self.suited(with_readers)
    }

    /// Makes the lock one for readers and a writer, and the workers readers that want to write.
    pub(super) fn of_upgrading_readers(self) -> Self {
        let suited = self.suited(|options| {
            with_readers(options);
            upgrade_by_waiting::upgrade(options);
        });
        [System::REDIS, System::ETCD, System::ZOOKEEPER].into_iter().fold(suited, Self::only_on)
    }

    /// As [`Exhibit::of_readers`], with readers that keep coming while the writer waits.
    pub(super) fn of_coming_readers(self) -> Self {
        self.suited(keep_readers_coming)
    }

    /// Lets one worker wait for the lock, a mutex.
    pub(super) fn of_queue(self) -> Self {
        self.suited(|options| wait_in_queue(options, 1))
    }

    /// Lets three workers wait for the lock, a mutex, with work for which others wait long.
    pub(super) fn of_long_queue(self) -> Self {
        self.suited(|options| {
            wait_in_queue(options, 3);
            for worker in &mut options.workers {
                worker.work = worker.work.max(Span::from_secs(1));
                worker.deadline = worker.deadline.max(Span::from_secs(60));
            }
        })
    }

    /// Creates an exhibit of a lock on several Redis servers.
    pub(super) fn redlock(flaw: Flaw) -> Self {
        Self::default().and_redlock(flaw)
    }

    /// Adds a lock on several Redis servers.
    pub(super) fn and_redlock(self, flaw: Flaw) -> Self {
        let make = |flaw: Option<Flaw>| move |place: &Workplace<'_>| on_redlock(place, flaw);
        self.and(System::REDLOCK, make(Some(flaw)), make(None))
    }

    /// Adds the library's lock on several Redis servers.
    pub(super) fn and_library_redlock<M: LockMistake<Redlock<SimRuntime>>>(self) -> Self {
        self.and(
            System::REDLOCK,
            lock_with::<Redlock<SimRuntime>, M>,
            lock_with::<Redlock<SimRuntime>, Faultless>,
        )
    }

    /// Creates an exhibit of a lock on etcd.
    pub(super) fn etcd<M: LockMistake<Etcd<SimRuntime>>>() -> Self {
        Self::default().and_etcd::<M>()
    }

    /// Adds a lock on etcd.
    pub(super) fn and_etcd<M: LockMistake<Etcd<SimRuntime>>>(self) -> Self {
        self.and(System::ETCD, lock_with::<Etcd<SimRuntime>, M>, lock_with::<Etcd<SimRuntime>, Faultless>)
    }

    /// Creates an exhibit of a lock on ZooKeeper.
    pub(super) fn zookeeper<M: LockMistake<ZooKeeper<SimRuntime>>>() -> Self {
        Self::default().and_zookeeper::<M>()
    }

    /// Adds a lock on ZooKeeper.
    pub(super) fn and_zookeeper<M: LockMistake<ZooKeeper<SimRuntime>>>(self) -> Self {
        self.and(
            System::ZOOKEEPER,
            lock_with::<ZooKeeper<SimRuntime>, M>,
            lock_with::<ZooKeeper<SimRuntime>, Faultless>,
        )
    }

    /// Adds locks on etcd and ZooKeeper that are stored in a form of their own, with their twins.
    pub(super) fn and_stored<M, T>(self, stored: Layout) -> Self
    where
        M: LockMistake<Etcd<SimRuntime>> + LockMistake<ZooKeeper<SimRuntime>>,
        T: LockMistake<Etcd<SimRuntime>> + LockMistake<ZooKeeper<SimRuntime>>,
    {
        let mut exhibit =
            self.and(System::ETCD, lock_with::<Etcd<SimRuntime>, M>, lock_with::<Etcd<SimRuntime>, T>).and(
                System::ZOOKEEPER,
                lock_with::<ZooKeeper<SimRuntime>, M>,
                lock_with::<ZooKeeper<SimRuntime>, T>,
            );
        (exhibit.mistaken.stored, exhibit.twin.stored) = (Some(stored), Some(stored));
        exhibit
    }

    /// Creates an exhibit of a lock on ZooKeeper that shares nothing with the library's, with its twin.
    pub(super) fn own_zookeeper(
        make: fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>>,
        twin: fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>>,
    ) -> Self {
        Self::default().and(System::ZOOKEEPER, make, twin)
    }

    fn and(
        mut self,
        system: System,
        make: impl Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync + 'static,
        twin: impl Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync + 'static,
    ) -> Self {
        self.mistaken.locks.push((system, Box::new(make)));
        self.twin.locks.push((system, Box::new(twin)));
        self
    }

    /// Creates an exhibit of workers, with any lock.
    pub(super) fn worker<M: WorkerMistake>() -> Self {
        let mut exhibit = Self::default();
        exhibit.mistaken.worker = Some(rounds_with::<M>);
        exhibit.twin.worker = Some(rounds_with::<Faultless>);
        exhibit
    }

    /// Creates an exhibit of workers that share nothing with the correct ones, with their twin.
    pub(super) fn own_worker(make: MakeWorker, twin: MakeWorker) -> Self {
        let mut exhibit = Self::default();
        exhibit.mistaken.worker = Some(make);
        exhibit.twin.worker = Some(twin);
        exhibit
    }

    /// Creates an exhibit of the resource, with any lock.
    pub(super) fn resource<M: ResourceMistake>() -> Self {
        Self::default().and_resource::<M>()
    }

    /// Adds the resource.
    pub(super) fn and_resource<M: ResourceMistake>(mut self) -> Self {
        self.mistaken.resource = Some(resource_with::<M>);
        self.twin.resource = Some(resource_with::<Faultless>);
        self
    }

    /// Creates an exhibit of the operator, who changes the options of the servers.
    pub(super) fn deployment(deploy: Deploy) -> Self {
        Self { deploy: Some(deploy), ..Self::default() }
    }

    /// Restricts the mistake to this system.
    pub(super) fn only_on(mut self, system: System) -> Self {
        self.only_on.push(system);
        self
    }

    /// Returns true if the mistake can be made on this system.
    pub(super) fn applies_to(&self, system: System) -> bool {
        if self.mistaken.locks.is_empty() {
            self.only_on.contains(&system) || (self.only_on.is_empty() && system.has_lock())
        } else {
            self.mistaken.lock_on(system).is_some()
        }
    }

    /// Returns the part that makes the mistake.
    pub(super) fn made_by(&self) -> &'static str {
        match (self.mistaken.locks.is_empty(), self.mistaken.worker, self.mistaken.resource) {
            (false, ..) => "lock",
            (_, Some(_), _) => "worker",
            (_, _, Some(_)) => "resource",
            _ => "deployment",
        }
    }

    /// Changes drawn options with which the exhibit can't be shown.
    pub(super) fn suit(&self, options: &mut Options) {
        // Mistakes of a lock on Redis know the layout of a counter a key. Those of shared counters have a
        // `suit` that sets them again.
        if self.counts || options.redis.tokens == Tokens::Shared {
            options.redis.tokens = Tokens::Counter;
        }
        if let Some(suit) = self.suits {
            suit(options);
        }
    }

    /// Changes the options of the servers to those with the mistake.
    pub(super) fn deploy(&self, options: &mut Options) {
        if let Some(deploy) = self.deploy {
            deploy(options);
        }
    }

    /// Puts the mistake into the laboratory.
    pub(super) fn put_into(self, lab: Lab, system: System) -> Lab {
        self.mistaken.put_into(lab, system)
    }

    /// Puts the twin into the laboratory.
    pub(super) fn put_twin_into(self, lab: Lab, system: System) -> Lab {
        self.twin.put_into(lab, system)
    }
}

/// Lets a worker do what suits locks of every kind: some workloads need a mutex.
fn with_any_lock(worker: &mut Worker) {
    worker.release = Default::default();
    let is_special = worker.flies() || worker.leads() || worker.observes() || worker.fires();
    if is_special || worker.runs_jobs() || worker.nests().is_some() {
        let Worker { mode, depth, fails, jobs, .. } = Worker::default();
        (worker.mode, worker.depth, worker.fails, worker.jobs) = (mode, depth, fails, jobs);
    }
}

/// Lets the first worker write, and the others read, under a lock for readers and a writer.
fn with_readers(options: &mut Options) {
    (options.permits, options.readers) = (None, true);
    (options.etcd, options.cron) = Default::default();
    // At the end of its numbers the counter ends a request for good, which no mistake here knows of.
    options.redis.fence_start = 0;
    for (number, worker) in options.workers.iter_mut().enumerate() {
        with_any_lock(worker);
        worker.shared = number > 0 && worker.mode == Default::default();
    }
}

/// Makes three workers at least read one key all the time, so that one or another has it, while the first
/// worker waits to write. The drawn readers have long ended when a writer counts as stuck.
fn keep_readers_coming(options: &mut Options) {
    with_readers(options);
    let unused = |name: &&str| options.worker(name).is_none();
    let missing = 4_usize.saturating_sub(options.workers.len());
    let added: Vec<_> = ["b", "c", "d"].into_iter().filter(unused).take(missing).map(Worker::new).collect();
    options.workers.extend(added);
    // A reader has the lock for most of its lease, and needs no renewal.
    options.ttl = Span::from_secs(2);
    for (number, worker) in options.workers.iter_mut().enumerate() {
        let Worker { name, starts, check, read, writes, retry_put, .. } = worker.clone();
        let own = Worker { name, starts, check, read, writes, retry_put, ..Worker::default() };
        let deadline = Span::from_secs(60);
        *worker = match number {
            // Asks when the readers are there.
            0 => Worker { starts: starts.plus(Span::from_secs(2)), deadline, ..own },
            _ => Worker { shared: true, rounds: 60, work: Span::from_secs(1), deadline, ..own },
        };
    }
}

/// Lets `waiters` workers wait for a mutex.
pub(super) fn wait_in_queue(options: &mut Options, waiters: u32) {
    (options.permits, options.readers, options.waiters_max) = (None, false, Some(waiters));
    (options.etcd, options.cron) = Default::default();
    // A waiter may wait for a dead one, too.
    options.within = options.within.map(|within| within.max(Span::from_secs(10)));
    options.workers.iter_mut().for_each(only_locking);
}

/// Lets a worker lock a key, or several.
pub(super) fn only_locking(worker: &mut Worker) {
    with_any_lock(worker);
    if !worker.locks_several() {
        let Worker { mode, attempts, .. } = Worker::default();
        (worker.mode, worker.attempts) = (mode, attempts);
    }
}

impl Parts {
    fn put_into(self, mut lab: Lab, system: System) -> Lab {
        if let Some(stored) = self.stored.filter(|_| [System::ETCD, System::ZOOKEEPER].contains(&system)) {
            lab = lab.with_stored_locks(move |lock| stored(system, lock));
        }
        if let Some(make) = self.resource {
            lab = lab.with_resource(make);
        }
        if let Some(make) = self.worker {
            lab = lab.with_worker(make);
        }
        // With a user's lock, the laboratory accepts the option `mutant`.
        lab.with_lock(move |place| self.lock_on(place.options.system)?(place))
    }

    fn lock_on(&self, system: System) -> Option<&MakeLock> {
        self.locks.iter().find(|(on, _)| *on == system).map(|(_, make)| make)
    }
}
