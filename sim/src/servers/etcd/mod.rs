//! An etcd cluster, version 3.4, as far as its clients can observe one.
//!
//! All members share one linearizable store; Raft itself is not simulated. A member answers while it and a
//! majority reach the leader. Otherwise it does not answer, as in etcd, except for serializable reads, which
//! show the state that it had applied before.

// `store` has keys, revisions and transactions, `lease` and `watch` leases and watches; `quorum` decides
// about the leader and about members that may answer, `apply` turns requests into changes, `service` is the
// wire, `locks` reports to the history, and `host` starts members.

mod apply;
mod core;
mod error;
mod host;
mod lease;
mod locks;
mod quorum;
mod service;
mod store;
mod watch;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dlock_runtime::Probe;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

pub use host::EtcdHost;
#[doc(hidden)]
pub use locks::{History, LockChange, LockEvent};

use core::Core;

use crate::world::machine::{Machine, WorldMachine};

/// The probes of a cluster, file by file.
pub(super) const PROBES: &[&[&Probe]] = &[apply::probe::ALL, quorum::probe::ALL];

/// The port of every member.
#[doc(hidden)]
pub const PORT: u16 = 2379;

/// The default of etcd's `--max-txn-ops`.
const TXN_OPS_MAX: usize = 128;

/// Receives everything that a cluster does, in order. It is called while no lock is held, so it may use the
/// cluster.
#[doc(hidden)]
pub trait Observer: Send + Sync {
    /// Receives the changes of locks by a request of `client`. If the cluster itself caused them, `client` is
    /// its name.
    fn locks_changed(&self, client: &str, changes: &[LockChange]) {
        let _ = (client, changes);
    }

    /// Receives a request of `client` that `member` has executed and not answered yet. `call` is the
    /// procedure's name: `Range`, `Put`, `DeleteRange`, `Txn`, `Compact`, `LeaseGrant`, `LeaseRevoke`,
    /// `LeaseKeepAlive`, `LeaseTimeToLive`, `LeaseLeases`, `Watch`, `Lock`, `Unlock`.
    fn executed(&self, member: usize, client: &str, call: &'static str) {
        let _ = (member, client, call);
    }

    /// Receives a change of the leader.
    fn leader_changed(&self, member: usize, term: u64) {
        let _ = (member, term);
    }
}

/// Ignores everything.
impl Observer for () {}

/// The options of a cluster.
pub struct ClusterOptions {
    /// The cluster's name. It takes the client's place in changes that the cluster itself caused.
    pub name: String,
    /// The members' names and the addresses at which clients reach them.
    pub members: Vec<(String, String)>,
    /// etcd's `--election-timeout`. A leader without contact for 1 to 1.6 times this time is replaced.
    pub election_timeout: Duration,
    /// etcd's `--max-txn-ops`: the most operations of a transaction, those of nested ones included.
    pub txn_ops_max: usize,
    /// True if the Lock service checks after a wait that the waiter's own lease still exists. etcd 3.4 does
    /// not, and grants the lock to a waiter whose lease has ended (etcd issue 11456); later versions do.
    pub rechecks_waiters: bool,
    /// Receives everything that the cluster does.
    pub observer: Arc<dyn Observer>,
}

impl ClusterOptions {
    /// Returns the options of members called `names`, on etcd's port, with etcd's own timeouts. The observer
    /// is [`History`].
    pub fn new<S: Into<String>>(name: &str, names: impl IntoIterator<Item = S>) -> Self {
        let member = |name: String| {
            let address = format!("http://{name}:{PORT}");
            (name, address)
        };
        Self {
            name: name.to_owned(),
            members: names.into_iter().map(Into::into).map(member).collect(),
            election_timeout: Duration::from_secs(1),
            txn_ops_max: TXN_OPS_MAX,
            rechecks_waiters: true,
            observer: Arc::new(History::of(name)),
        }
    }
}

/// A cluster. Clones are the same cluster. Its data survive crashes of its members, as etcd's do.
pub struct Cluster<M = WorldMachine> {
    shared: Arc<Shared<M>>,
}

struct Shared<M> {
    options: ClusterOptions,
    /// The members' machines, known once their processes are started for the first time.
    machines: Vec<OnceLock<M>>,
    core: Mutex<Core>,
    /// Wakes requests that wait for a quorum, for a lock or for a lease to end.
    changed: Notify,
}

impl<M: Machine> Cluster<M> {
    /// Creates a cluster whose first member leads, and whose members ([`Cluster::member`]) have not been
    /// started yet.
    pub fn new(options: ClusterOptions) -> Self {
        let count = options.members.len();
        let machines = (0..count).map(|_| OnceLock::new()).collect();
        let core = Mutex::new(Core::new(count));
        Self { shared: Arc::new(Shared { options, machines, core, changed: Notify::new() }) }
    }

    /// Returns the member called `name`; `None` if there is none.
    pub fn member(&self, name: &str) -> Option<EtcdHost<M>> {
        let number = self.shared.options.members.iter().position(|(known, _)| known == name)?;
        Some(EtcdHost { cluster: self.clone(), number })
    }

    /// Follows the leader, is a candidate in elections, and ends leases while it leads. Runs in the member's
    /// process, again after each restart.
    async fn run_member(&self, member: usize) {
        self.rejoin(member);
        loop {
            let next = self.now(member).saturating_add(quorum::TICK_NANOS);
            self.sleep_until(member, next).await;
            self.tick(member);
        }
    }

    /// Serves one connection to a member, HTTP/2 with gRPC, until the client leaves or the stream breaks.
    /// `client` is its name for observers.
    async fn serve_connection(
        &self,
        member: usize,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        client: &str,
    ) {
        service::serve(self.clone(), member, stream, client).await;
    }

    /// Returns the member that leads, or led last if no majority follows it.
    pub fn leader(&self) -> usize {
        self.core().leader
    }

    /// Returns the term: the number of elections so far.
    pub fn term(&self) -> u64 {
        self.core().term
    }

    /// Returns the store's revision.
    pub fn revision(&self) -> i64 {
        self.core().state.store.revision()
    }

    /// Returns the number of requests that all members have executed.
    pub fn executed(&self) -> u64 {
        self.core().members.iter().map(|member| member.executed).sum()
    }

    /// Returns the monotonic clock of a member; 0 until it was started.
    fn now(&self, member: usize) -> u64 {
        self.machine(member).map_or(0, Machine::monotonic_nanos)
    }

    async fn sleep_until(&self, member: usize, nanos: u64) {
        if let Some(machine) = self.machine(member) {
            machine.sleep_until(nanos).await;
        }
    }

    /// Runs a task in a member's process, with which it ends.
    fn spawn(&self, member: usize, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(machine) = self.machine(member) {
            machine.spawn(task);
        }
    }

    fn election_nanos(&self) -> u64 {
        u64::try_from(self.shared.options.election_timeout.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the shortest time to live of a lease: one and a half election timeouts, in whole seconds
    /// (server.go, `minTTL`).
    fn ttl_seconds_min(&self) -> i64 {
        i64::try_from((self.election_nanos() / 2 * 3).div_ceil(1_000_000_000)).unwrap_or(i64::MAX)
    }

    fn report(&self, client: &str, changes: &[LockChange]) {
        if !changes.is_empty() {
            self.shared.options.observer.locks_changed(client, changes);
        }
    }
}

impl<M> Cluster<M> {
    fn machine(&self, member: usize) -> Option<&M> {
        self.shared.machines.get(member)?.get()
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.shared.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Clone for Cluster<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M> fmt::Debug for Cluster<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("name", &self.shared.options.name).finish_non_exhaustive()
    }
}
