//! Locks of simulated processes on the simulated etcd, for tests that do by hand what a schedule would do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::etcd::{Etcd as Locks, EtcdOptions};
use dlock::{AcquireError, Backend, Handle, Instant, Lock, LockKey, Options, Runtime};
use etcd_client::GetOptions;
use sim::etcd_lock_service::EtcdLockService;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;

use super::support::Etcd;

/// The session of every client. Longer than the least that the cluster grants.
pub(crate) const SESSION: Duration = Duration::from_secs(6);
/// The TTL of every lock.
pub(crate) const TTL: Duration = Duration::from_secs(4);
/// Nothing in a test takes as long.
pub(crate) const LONG: Duration = Duration::from_secs(600);

const MEMBERS: [&str; 3] = ["etcd-1:2379", "etcd-2:2379", "etcd-3:2379"];

pub(crate) struct Lab {
    etcd: Etcd,
    /// One for each process, since another would draw the same random bytes again, and owner tokens with
    /// them.
    runtimes: [(&'static str, SimRuntime); 2],
}

/// A client with a session of its own.
pub(crate) struct Client<B: Backend = Locks<SimRuntime>> {
    pub(crate) runtime: SimRuntime,
    pub(crate) id: ProcessId,
    pub(crate) lock: Lock<B>,
}

/// An acquire that is under way in a task.
pub(crate) struct Waiting<B: Backend>(Arc<Mutex<Option<Acquired<B>>>>);

type Acquired<B> = Result<Handle<B>, AcquireError>;

pub(crate) fn key() -> LockKey {
    LockKey::new("orders", "42").unwrap()
}

pub(crate) fn other_key() -> LockKey {
    LockKey::for_tenant("acme", "orders", "42").unwrap()
}

impl Lab {
    pub(crate) fn new(etcd: &Etcd) -> Self {
        Self { etcd: etcd.clone(), runtimes: ["a", "b"].map(|name| (name, etcd.runtime(name))) }
    }

    fn runtime(&self, process: &str) -> SimRuntime {
        self.runtimes.iter().find(|(name, _)| *name == process).unwrap().1.clone()
    }

    /// A client of `process` on the queue of this library. It tries the members in order.
    pub(crate) fn client(&self, process: &str) -> Client {
        self.client_at(process, &MEMBERS)
    }

    pub(crate) fn client_at(&self, process: &str, members: &[&str]) -> Client {
        let runtime = self.runtime(process);
        let locks = Locks::new(runtime, members, EtcdOptions::new(SESSION)).unwrap();
        self.with(process, locks)
    }

    /// A client on etcd's Lock service.
    pub(crate) fn service(&self, process: &str) -> Client<EtcdLockService> {
        let runtime = self.runtime(process);
        self.with(process, EtcdLockService::new(runtime, &MEMBERS, SESSION))
    }

    fn with<B: Backend<Runtime = SimRuntime>>(&self, process: &str, backend: B) -> Client<B> {
        let runtime = backend.runtime().clone();
        let mut options = Options::new(TTL);
        // A slash must not part the keys.
        options.instance = Some(format!("{process}/1"));
        let id = self.etcd.world.find(process).unwrap();
        Client { runtime, id, lock: Lock::new(backend, options).unwrap() }
    }

    /// Acquires in a task, for at most `time`.
    pub(crate) fn spawn_acquire<B: Backend<Runtime = SimRuntime>>(
        &self,
        client: &Client<B>,
        key: &LockKey,
        time: Duration,
    ) -> Waiting<B> {
        let (lock, key, deadline) = (client.lock.clone(), key.clone(), client.within(time));
        let result = Arc::new(Mutex::new(None));
        let found = Arc::clone(&result);
        client.runtime.spawn(async move {
            let acquired = lock.acquire(&key, deadline).await;
            *found.lock().unwrap() = Some(acquired);
        });
        Waiting(result)
    }

    /// The keys of all queues.
    pub(crate) async fn keys(&self) -> usize {
        let mut client = self.etcd.client_of("b", self.etcd.cluster.leader()).await;
        client.get("lock/v1/", Some(GetOptions::new().with_prefix())).await.unwrap().kvs().len()
    }

    pub(crate) async fn leases(&self) -> usize {
        let mut client = self.etcd.client_of("b", self.etcd.cluster.leader()).await;
        client.leases().await.unwrap().leases().len()
    }

    /// Ends all leases, as an operator would, or a client that is thought dead.
    pub(crate) async fn revoke_all(&self) {
        let mut client = self.etcd.client_of("b", self.etcd.cluster.leader()).await;
        for lease in client.leases().await.unwrap().leases() {
            client.lease_revoke(lease.id()).await.unwrap();
        }
    }

    /// The owner token of the first in the queue.
    pub(crate) async fn owner_of(&self, key: &LockKey) -> Option<String> {
        let mut client = self.etcd.client_of("b", self.etcd.cluster.leader()).await;
        let queue = format!("lock/v1/{}/", key.name());
        let found = client.get(queue, Some(GetOptions::new().with_prefix())).await.unwrap();
        let first = found.kvs().iter().min_by_key(|kv| kv.create_revision())?;
        Some(first.value_str().unwrap().to_owned())
    }

    /// The create revision of the key of a holder.
    pub(crate) async fn create_revision<B: Backend>(&self, key: &LockKey, holder: &Handle<B>) -> Option<u64> {
        let mut client = self.etcd.client_of("b", self.etcd.cluster.leader()).await;
        let queue = format!("lock/v1/{}/", key.name());
        let found = client.get(queue, Some(GetOptions::new().with_prefix())).await.unwrap();
        let own = found.kvs().iter().find(|kv| kv.value() == holder.owner().as_str().as_bytes())?;
        Some(own.create_revision().unsigned_abs())
    }

    /// Moves the store's revision on.
    pub(crate) async fn write_elsewhere(&self, writes: usize) {
        let mut client = self.etcd.client_of("b", self.etcd.cluster.leader()).await;
        for _ in 0..writes {
            client.put("elsewhere", "", None).await.unwrap();
        }
    }
}

impl<B: Backend<Runtime = SimRuntime>> Client<B> {
    /// The deadline of an acquire that may wait for `time`.
    pub(crate) fn within(&self, time: Duration) -> Instant {
        self.runtime.now() + time
    }
}

impl<B: Backend> Waiting<B> {
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }

    /// What came of it.
    pub(crate) async fn wait(self, etcd: &Etcd) -> Acquired<B> {
        loop {
            if let Some(result) = self.0.lock().unwrap().take() {
                return result;
            }
            etcd.at(etcd.now() + 1).await;
        }
    }
}
