//! A Redis server in all lives of its process.

use std::sync::{Arc, Mutex};

use dlock_runtime::{probes, sometimes};
use futures_util::future::BoxFuture;
use history::Kind;

use super::{LockView, Observer, Persistence, Server, ServerOptions, Version};
use crate::record::note;
use crate::servers::host::{Acted, Action, ActionError, Host};
use crate::world::lock;
use crate::world::machine::{Machine, WorldMachine};

/// The port on which it listens.
pub const PORT: u16 = 6379;

const PROMOTE: Action = Action { name: "promote", argument: None };
const EVICT: Action = Action { name: "evict", argument: Some("the server's keys, separated by spaces") };

/// A Redis server on port 6379 of its machine. A restart restores its keys from its append-only file. It
/// records the changes of locks in the history.
///
/// Actions: `promote` makes a replica a primary; `evict` removes keys, as a server does that is short of
/// memory.
///
/// # Example
///
/// ```
/// use sim::Sim;
/// use sim::servers::redis::{Persistence, RedisHost};
///
/// let primary = RedisHost::new().persistence(Persistence::Always).lock_key("account-7", "account:7");
/// let replica = RedisHost::new().replica_of("redis-1:6379");
/// let mut sim = Sim::new(7);
/// sim.host("redis-1", primary).host("redis-2", replica).key("account:7");
/// ```
pub struct RedisHost<M: Machine = WorldMachine> {
    setup: Arc<Setup>,
    state: Arc<Mutex<State<M>>>,
}

/// The options of the server, the same in every life.
#[derive(Clone)]
struct Setup {
    persistence: Persistence,
    /// The version of the first life, and that of later ones.
    versions: (Version, Version),
    /// The address of the primary, which it follows in its first life.
    primary: Option<String>,
    /// A name that resolves to it while it is the primary.
    primary_name: Option<String>,
    /// Keys and values of the first life.
    presets: Vec<(Vec<u8>, Vec<u8>)>,
    /// The keys of locks, besides those of `dlock`.
    locks: LockView,
    /// Observes the server in place of the history.
    observer: Option<Arc<dyn Observer>>,
}

struct State<M> {
    /// The number of starts of the process.
    lives: u32,
    is_alive: bool,
    server: Option<Server<M>>,
    /// Commands that earlier lives executed.
    executed: u64,
}

impl<M: Machine> RedisHost<M> {
    /// Creates a primary without persistence.
    pub fn new() -> Self {
        let setup = Setup {
            persistence: Persistence::None,
            versions: (Version::default(), Version::default()),
            primary: None,
            primary_name: None,
            presets: Vec::new(),
            locks: LockView::default(),
            observer: None,
        };
        let state = State { lives: 0, is_alive: false, server: None, executed: 0 };
        Self { setup: Arc::new(setup), state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the policy for writing to the disk.
    #[must_use]
    pub fn persistence(self, persistence: Persistence) -> Self {
        self.with(|setup| setup.persistence = persistence)
    }

    /// Sets the version, which decides on the commands that it has.
    #[must_use]
    pub fn version(self, version: Version) -> Self {
        self.with(|setup| setup.versions = (version, version))
    }

    /// Sets the version from the first restart on: the server is upgraded, or downgraded.
    #[must_use]
    pub fn version_after_restart(self, version: Version) -> Self {
        self.with(|setup| setup.versions.1 = version)
    }

    /// Starts as a replica of the primary at `address`, written `host:port`. After a restart it is a primary:
    /// the choice of the primary is made outside of Redis.
    #[must_use]
    pub fn replica_of(self, address: impl Into<String>) -> Self {
        let address = address.into();
        self.with(|setup| setup.primary = Some(address))
    }

    /// Gives the name `name` to the server while it is the primary, as a virtual address does: from its first
    /// start if it starts as the primary, and when it is promoted.
    #[must_use]
    pub fn primary_name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.with(|setup| setup.primary_name = Some(name))
    }

    /// Sets a key before the run begins. After a restart it exists only if the disk has it.
    #[must_use]
    pub fn preset(self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        let preset = (key.into(), value.into());
        self.with(|setup| setup.presets.push(preset))
    }

    /// Records the key `key` in the history as the lock called `lock`. The key exists while the lock is held,
    /// and its value is the owner; of a hash, each field is an owner, and its value is the number of times
    /// that this owner has the lock, as Redisson's locks are stored. The keys of `dlock` need no such call.
    #[must_use]
    pub fn lock_key(self, key: impl Into<Vec<u8>>, lock: impl Into<String>) -> Self {
        let (key, lock) = (key.into(), lock.into());
        self.with(|setup| setup.locks.add(key, lock))
    }

    /// Sets an observer, in place of the history.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.with(|setup| setup.observer = Some(observer))
    }

    /// Returns the server of the present life; `None` while it is down.
    pub fn server(&self) -> Option<Server<M>> {
        lock(&self.state).server.clone()
    }

    fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(Arc::make_mut(&mut self.setup));
        self
    }

    /// Begins a life of the process, and returns whether it is the first.
    fn begin(&self, machine: &M) -> bool {
        let mut state = lock(&self.state);
        state.lives += 1;
        state.is_alive = true;
        let is_first = state.lives == 1;
        drop(state);
        if let Some(name) =
            self.setup.primary_name.as_ref().filter(|_| is_first && self.setup.primary.is_none())
        {
            machine.take_name(name);
        }
        is_first
    }

    /// Runs the main task of one life.
    async fn run(self, machine: M, is_first: bool) {
        let server = self.new_server(&machine, is_first);
        {
            let mut state = lock(&self.state);
            // A fault at a point of the start may have killed the process.
            if !state.is_alive {
                return;
            }
            state.server = Some(server.clone());
        }
        if let Some(primary) = self.setup.primary.clone() {
            let replica = server.clone();
            machine.spawn(async move { replica.replicate(&primary).await });
        }
        let background = server.clone();
        machine.spawn(async move { background.background().await });
        // It fails only if the process is dead.
        let _ = machine
            .serve(PORT, |stream, client| {
                let server = server.clone();
                async move { server.serve_connection(stream, &client).await }
            })
            .await;
    }

    fn new_server(&self, machine: &M, is_first: bool) -> Server<M> {
        let Setup { persistence, versions, primary, presets, locks, observer, .. } = &*self.setup;
        let observer = observer.clone().unwrap_or_else(|| Arc::new(locks.clone()));
        let options = ServerOptions {
            name: machine.name().to_owned(),
            persistence: *persistence,
            is_replica: primary.is_some() && is_first,
            version: if is_first { versions.0 } else { versions.1 },
            observer,
        };
        let server = Server::new(options, machine.clone());
        if is_first {
            presets.iter().for_each(|(key, value)| server.preset(key, value));
        }
        server
    }

    fn promote(&self, server: &Server<M>) -> Acted {
        let machine = server.machine();
        let primary =
            self.setup.primary.as_deref().map(|address| address.split(':').next().unwrap_or(address));
        let is_cut_off = || primary.is_some_and(|primary| !machine.reaches(primary));
        sometimes!(machine, promoted_cut_off, server.is_replica() && is_cut_off());
        sometimes!(machine, promoted_with_keys, server.is_replica() && server.keys() > 0);
        server.promote();
        note(server.machine().name(), Kind::ServerPromoted { detail: None });
        if let Some(name) = &self.setup.primary_name {
            server.machine().take_name(name);
        }
        Acted::Done("promoted".to_owned())
    }
}

/// Evicts keys in a task of its own.
fn evict<M: Machine>(server: Server<M>, keys: &str) -> Acted {
    let machine = server.machine().clone();
    let text = format!("evicts {keys}");
    let keys: Vec<String> = keys.split_whitespace().map(str::to_owned).collect();
    machine.spawn(async move {
        for key in keys {
            server.evict(key.as_bytes());
        }
    });
    Acted::Done(text)
}

impl<M: Machine> Host<M> for RedisHost<M> {
    fn noun(&self) -> &'static str {
        if self.setup.primary.is_some() { "a Redis replica" } else { "a Redis server" }
    }

    fn start(&self, machine: M) -> BoxFuture<'static, ()> {
        let is_first = self.begin(&machine);
        Box::pin(self.clone().run(machine, is_first))
    }

    fn shut_down(&self) {
        if let Some(server) = self.server() {
            server.shut_down();
        }
    }

    fn died(&self) {
        let server = {
            let mut state = lock(&self.state);
            state.is_alive = false;
            let server = state.server.take();
            state.executed += server.as_ref().map_or(0, Server::executed);
            server
        };
        // Drop it while no lock is held.
        drop(server);
    }

    fn clock_set(&self) {
        if let Some(server) = self.server() {
            server.clock_changed();
        }
    }

    fn actions(&self) -> &'static [Action] {
        &[PROMOTE, EVICT]
    }

    /// Offers `evict` on a primary only: a replica evicts nothing.
    fn offers(&self, action: &str) -> bool {
        let is_up = self.server().is_some_and(|server| action != EVICT.name || !server.is_replica());
        is_up && self.actions().iter().any(|known| known.name == action)
    }

    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        let action = *self.check(action, argument)?;
        let Some(server) = self.server() else { return Ok(Acted::Down) };
        Ok(match argument {
            Some(keys) if action == EVICT => evict(server, keys),
            _ => self.promote(&server),
        })
    }

    fn keeps_on_disk(&self) -> bool {
        self.setup.persistence != Persistence::None
    }

    fn executed(&self) -> u64 {
        let state = lock(&self.state);
        state.executed + state.server.as_ref().map_or(0, Server::executed)
    }

    fn close(&self) {
        self.died();
    }
}

impl<M: Machine> Default for RedisHost<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Clone for RedisHost<M> {
    fn clone(&self) -> Self {
        Self { setup: Arc::clone(&self.setup), state: Arc::clone(&self.state) }
    }
}

probes! {
    /// A replica was promoted while it could not reach its primary: it may lack the last writes.
    sometimes promoted_cut_off;
    /// A replica was promoted that held keys.
    sometimes promoted_with_keys;
}
