//! Clients with locks on the simulated etcd, for tests that apply their faults themselves.

use std::time::Duration;

use dlock::etcd::{Etcd as Locks, EtcdOptions};
use dlock::{Backend, Handle, LockKey, Options};
use etcd_client::GetOptions;
use lab::etcd_lock_service::EtcdLockService;
use sim::world::runtime::SimRuntime;

use super::support::Etcd;
use crate::support::scripts::Member;
pub(crate) use crate::support::scripts::key;

/// The session of every client. Longer than the minimum TTL that the cluster grants.
pub(crate) const SESSION: Duration = Duration::from_secs(6);
/// The TTL of every lock.
pub(crate) const TTL: Duration = Duration::from_secs(4);
/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(600);

const ADDRESSES: [&str; 3] = ["etcd-1:2379", "etcd-2:2379", "etcd-3:2379"];

pub(crate) struct Lab(Etcd);

/// A client with a session of its own.
pub(crate) type Client<B = Locks<SimRuntime>> = Member<B>;

pub(crate) fn other_key() -> LockKey {
    LockKey::for_tenant("acme", "orders", "42").unwrap()
}

impl Lab {
    pub(crate) fn new(etcd: &Etcd) -> Self {
        Self(etcd.clone())
    }

    /// Returns a client in `process` with dlock's own lock. It tries the members in order.
    pub(crate) fn client(&self, process: &str) -> Client {
        self.client_at(process, &ADDRESSES)
    }

    pub(crate) fn client_at(&self, process: &str, members: &[&str]) -> Client {
        let runtime = self.0.runtime(process);
        let locks = Locks::new(runtime, members, EtcdOptions::new(SESSION)).unwrap();
        self.with(process, locks)
    }

    /// Returns a client in `process` with the lock on etcd's Lock service.
    pub(crate) fn service(&self, process: &str) -> Client<EtcdLockService> {
        let runtime = self.0.runtime(process);
        self.with(process, EtcdLockService::new(runtime, &ADDRESSES, SESSION))
    }

    fn with<B: Backend<Runtime = SimRuntime>>(&self, process: &str, backend: B) -> Client<B> {
        let mut options = Options::new(TTL);
        // With a slash, which must not split the keys.
        options.instance = Some(format!("{process}/1"));
        Member::new(&self.0.control.process(process), backend, options)
    }

    /// Returns a plain client of the leader, as an operator would use.
    async fn operator(&self) -> etcd_client::Client {
        self.0.client_of("b", self.0.cluster.leader()).await
    }

    /// Counts the keys in all queues.
    pub(crate) async fn keys(&self) -> usize {
        let mut client = self.operator().await;
        client.get("lock/v1/", Some(GetOptions::new().with_prefix())).await.unwrap().kvs().len()
    }

    pub(crate) async fn leases(&self) -> usize {
        let mut client = self.operator().await;
        client.leases().await.unwrap().leases().len()
    }

    /// Revokes all leases, as an operator would.
    pub(crate) async fn revoke_all(&self) {
        let mut client = self.operator().await;
        for lease in client.leases().await.unwrap().leases() {
            client.lease_revoke(lease.id()).await.unwrap();
        }
    }

    /// Returns the owner token of the first key in the queue.
    pub(crate) async fn owner_of(&self, key: &LockKey) -> Option<String> {
        let mut client = self.operator().await;
        let queue = format!("lock/v1/{}/", key.name());
        let found = client.get(queue, Some(GetOptions::new().with_prefix())).await.unwrap();
        let first = found.kvs().iter().min_by_key(|kv| kv.create_revision())?;
        Some(first.value_str().unwrap().to_owned())
    }

    /// Returns the create revision of the holder's key.
    pub(crate) async fn create_revision<B: Backend>(&self, key: &LockKey, holder: &Handle<B>) -> Option<u64> {
        let mut client = self.operator().await;
        let queue = format!("lock/v1/{}/", key.name());
        let found = client.get(queue, Some(GetOptions::new().with_prefix())).await.unwrap();
        let own = found.kvs().iter().find(|kv| kv.value() == holder.owner().as_str().as_bytes())?;
        Some(own.create_revision().unsigned_abs())
    }

    /// Raises the store's revision by `writes` unrelated writes.
    pub(crate) async fn write_elsewhere(&self, writes: usize) {
        let mut client = self.operator().await;
        for _ in 0..writes {
            client.put("elsewhere", "", None).await.unwrap();
        }
    }
}
