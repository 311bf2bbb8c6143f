//! Clients with locks in a world of three ZooKeeper servers, and an observer of the entries in their queues.

use std::future::Future;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{Handle, Options};
use sim::Process;
use sim::servers::zookeeper::{Change, Observer, Removal};
use sim::world::runtime::SimRuntime;

use super::support::{SERVERS, Zoo, observed_zoo};
pub use crate::support::scripts::key;
use crate::support::scripts::{self, Acquiring};

pub type ZooHandle = Handle<ZooKeeper<SimRuntime>>;

/// The session timeout, and the TTL of leases.
pub const SESSION: Duration = Duration::from_secs(1);

type Act = Box<dyn FnMut(&str) + Send>;

/// Records the entries of queues, and the operations that the servers execute.
#[derive(Default)]
pub struct Entries {
    state: Mutex<State>,
    on_entry: Mutex<Option<Act>>,
}

#[derive(Default)]
struct State {
    /// Path and zxid of each present entry, oldest first.
    present: Vec<(String, i64)>,
    created: usize,
    expired: usize,
    executed: Vec<(String, String, &'static str)>,
}

impl Entries {
    /// Returns the zxids of the present entries, oldest first.
    pub fn zxids(&self) -> Vec<u64> {
        let state = self.state.lock().unwrap();
        state.present.iter().map(|(_, zxid)| u64::try_from(*zxid).unwrap()).collect()
    }

    /// Returns the paths of the present entries, oldest first.
    pub fn paths(&self) -> Vec<String> {
        self.state.lock().unwrap().present.iter().map(|(path, _)| path.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.state.lock().unwrap().present.len()
    }

    /// Counts all entries that were ever created.
    pub fn created(&self) -> usize {
        self.state.lock().unwrap().created
    }

    /// Counts the entries that were removed because their session expired.
    pub fn expired(&self) -> usize {
        self.state.lock().unwrap().expired
    }

    /// Returns the operations executed since the last call, without pings: server, client, name.
    pub fn take_executed(&self) -> Vec<(String, String, &'static str)> {
        let executed = mem::take(&mut self.state.lock().unwrap().executed);
        executed.into_iter().filter(|(_, _, name)| *name != "ping").collect()
    }

    /// Calls `act` with the client's name when an entry has been created, before its creation is answered.
    pub fn on_entry(&self, act: impl FnMut(&str) + Send + 'static) {
        *self.on_entry.lock().unwrap() = Some(Box::new(act));
    }

    fn record(&self, change: &Change) -> bool {
        let mut state = self.state.lock().unwrap();
        match change {
            Change::Created { path, zxid, timeout: Some(_), .. } => {
                state.present.push((path.clone(), *zxid));
                state.created += 1;
                return true;
            }
            Change::Deleted { path, cause, .. } => {
                state.present.retain(|(present, _)| present != path);
                state.expired += usize::from(*cause == Removal::Expired);
            }
            _ => {}
        }
        false
    }
}

impl Observer for Entries {
    fn changed(&self, client: &str, changes: &[Change]) {
        for change in changes {
            if self.record(change)
                && let Some(act) = &mut *self.on_entry.lock().unwrap()
            {
                act(client);
            }
        }
    }

    fn executed(&self, server: &str, client: &str, operation: &'static str) {
        self.state.lock().unwrap().executed.push((server.to_owned(), client.to_owned(), operation));
    }
}

/// One client and its lock.
pub type Member = scripts::Member<ZooKeeper<SimRuntime>>;

/// Returns a client in `process`, with a session of its own at one of `servers`.
pub fn member_at(process: &Process, servers: &[&str]) -> Member {
    let servers: Vec<_> = servers.iter().map(|server| format!("{server}:2181")).collect();
    let zookeeper = ZooKeeper::new(process.runtime(), &servers, ZooKeeperOptions::new(SESSION)).unwrap();
    Member::new(process, zookeeper, Options::new(SESSION))
}

/// Returns a client in `process`, with a session of its own at any server.
pub fn member(process: &Process) -> Member {
    member_at(process, &SERVERS)
}

impl Member {
    pub async fn try_acquire(&self) -> ZooHandle {
        self.lock.try_acquire(&key()).await.unwrap()
    }

    pub async fn acquire(&self, millis: u64) -> ZooHandle {
        self.lock.acquire(&key(), self.within(Duration::from_millis(millis))).await.unwrap()
    }

    /// Acquires in a task of its own.
    pub fn wait_in_queue(&self, millis: u64) -> Acquiring<ZooKeeper<SimRuntime>> {
        self.spawn_acquire(&key(), Duration::from_millis(millis))
    }
}

impl Zoo {
    pub fn members(&self) -> (Member, Member) {
        (member(&self.process("a")), member(&self.process("b")))
    }

    /// Cuts the process off from all servers.
    pub fn isolate(&self, name: &str) {
        SERVERS.iter().for_each(|server| self.part(name, server));
    }

    pub fn reunite(&self, name: &str) {
        SERVERS.iter().for_each(|server| self.join(name, server));
    }
}

/// Runs `test` in a zoo whose entries are recorded.
pub fn with_entries<T: Send, F: Future<Output = T>>(test: impl FnOnce(Zoo, Arc<Entries>) -> F + Send) -> T {
    let entries = Arc::new(Entries::default());
    let observer = Arc::clone(&entries) as Arc<dyn Observer>;
    let (_, result) = observed_zoo(observer, |zoo| async move {
        // Time to elect a leader.
        zoo.pass(300).await;
        test(zoo, entries).await
    });
    result
}
