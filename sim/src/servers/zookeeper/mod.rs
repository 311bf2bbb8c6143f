//! A ZooKeeper ensemble, version 3.8, as far as lock clients can observe one.
//!
//! All members share one history of transactions, which survives every crash, as the real log does; ZAB, the
//! protocol by which members agree on it, is not simulated. A member that is out of touch shows the state
//! that it knew, with the watches of that state, so reads may be stale until a `sync`. A follower in touch is
//! never behind its leader, while a real one may be some milliseconds late. The leader learns at once of a
//! session's message that reaches a follower in touch (a real one within half a tick). A member out of touch
//! still answers pings and does not pass them on, so a client may believe in a session that has expired.

// `tree` has the nodes, `session` sessions, `watch` watches; `core` executes requests, `member` and `leading`
// are the members and their roles, `connection` is the wire, `observe` reports to the history, and `host`
// starts members.

mod connection;
mod core;
mod host;
mod leading;
mod member;
mod observe;
mod session;
mod tree;
mod watch;
mod words;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use dlock_runtime::{Probe, probes, sometimes};
use tokio::io::{AsyncRead, AsyncWrite};

#[doc(hidden)]
pub use host::PORT;
pub use host::ZooKeeperHost;
#[doc(hidden)]
pub use observe::{Change, ENSEMBLE, LockView, Observer, Removal};

use self::core::{Core, Now};
use crate::world::lock;
use crate::world::machine::{Machine, WorldMachine};
use connection::Connection;

/// The probes of an ensemble, file by file.
pub(super) const PROBES: &[&[&Probe]] = &[probe::ALL, connection::probe::ALL];

/// The options of an ensemble.
pub struct EnsembleOptions {
    /// The members' names. With one name it is a standalone server.
    pub names: Vec<String>,
    /// ZooKeeper's `tickTime`: sessions expire at whole ticks.
    pub tick: Duration,
    /// ZooKeeper's `minSessionTimeout` and `maxSessionTimeout`; `None` for its default, 2 to 20 ticks.
    pub session_timeouts: Option<RangeInclusive<Duration>>,
    /// ZooKeeper's `syncLimit`: the ticks for which a member goes on serving while it is out of touch.
    pub sync_limit: u32,
    /// Receives everything that the members do.
    pub observer: Arc<dyn Observer>,
}

/// An ensemble. Clones are the same ensemble. Its data survive the crashes of its members.
pub struct Ensemble<M = WorldMachine>(Arc<Shared<M>>);

/// A member of an ensemble, in one life of its process. Clones are the same member.
struct Server<M> {
    shared: Arc<Shared<M>>,
    member: usize,
    machine: M,
}

struct Shared<M> {
    options: EnsembleOptions,
    /// The members, by number.
    members: Vec<MemberProcess<M>>,
    core: Mutex<Core>,
}

/// The process of a member, beside the shared state.
struct MemberProcess<M> {
    /// Known once its process is started for the first time.
    machine: OnceLock<M>,
    /// Requests that it has executed, in all lives of its process.
    executed: AtomicU64,
}

impl EnsembleOptions {
    /// Creates an ensemble of these members with ticks of 2 s and a `syncLimit` of 5, the defaults of
    /// ZooKeeper's own sample. The observer is a [`LockView`].
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        let tick = Duration::from_secs(2);
        Self { names, tick, session_timeouts: None, sync_limit: 5, observer: Arc::new(LockView::default()) }
    }
}

impl<M: Machine> Ensemble<M> {
    /// Creates an ensemble none of whose members runs yet.
    pub fn new(options: EnsembleOptions) -> Self {
        let members = options.names.len();
        let core = Mutex::new(Core::new(members, options.tick, options.sync_limit));
        let process = |_| MemberProcess { machine: OnceLock::new(), executed: AtomicU64::new(0) };
        let members = (0..members).map(process).collect();
        Self(Arc::new(Shared { options, members, core }))
    }

    /// Returns the member called `name`; `None` if there is none.
    pub fn member(&self, name: &str) -> Option<ZooKeeperHost<M>> {
        let number = self.0.options.names.iter().position(|known| known == name)?;
        Some(ZooKeeperHost { ensemble: self.clone(), number })
    }

    /// Returns the server of a member in a new life of its process. It serves once [`Server::run`] runs.
    fn server(&self, member: usize, machine: M) -> Server<M> {
        // The machine is the same in every life of the process.
        let _ = self.0.members[member].machine.set(machine.clone());
        Server { shared: Arc::clone(&self.0), member, machine }
    }

    /// Returns the name of the member that leads, if one does.
    pub fn leader(&self) -> Option<&str> {
        let leader = lock(&self.0.core).leader()?;
        self.0.options.names.get(leader).map(String::as_str)
    }

    /// Replaces the leader by another member that is in touch; all members close their connections. Returns
    /// the name of the new leader, or `None` if there is no such member.
    pub fn change_leader(&self) -> Option<&str> {
        let new = lock(&self.0.core).change_leader(|member| self.0.now(member, member))?;
        self.0.options.names.get(new).map(String::as_str)
    }

    /// Makes the member called `name` the leader. Returns false if it is not in touch, or leads already.
    pub fn move_leader(&self, name: &str) -> bool {
        let Some(member) = self.0.options.names.iter().position(|known| known == name) else { return false };
        self.lead(member)
    }

    fn lead(&self, member: usize) -> bool {
        lock(&self.0.core).move_leader(member, |member| self.0.now(member, member))
    }

    /// Sets the number of children that the node at `path` has had, for tests that would need billions of
    /// them. Returns false if there is no such node.
    pub fn age(&self, path: &str, count: i32) -> bool {
        lock(&self.0.core).tree.age(path, count)
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        lock(&self.0.core).sessions.len()
    }
}

impl<M: Machine> Server<M> {
    /// Takes part in the ensemble until the future is dropped, at the end of the member's process.
    async fn run(&self) {
        let life = self.core().start(self.member);
        let _up = Up { server: self.clone(), life };
        let half_tick = u64::try_from(self.shared.options.tick.as_nanos() / 2).unwrap_or(u64::MAX).max(1);
        loop {
            self.attended(|core, now| {
                if core.leader() == Some(self.member) && core.members[self.member].is_in_touch() {
                    let sessions = core.sessions.len();
                    core.expire(now);
                    sometimes!(self.machine, session_expired, core.sessions.len() < sessions);
                }
            });
            self.publish(self.name());
            let now = self.machine.monotonic_nanos();
            self.machine.sleep(Duration::from_nanos(half_tick - now % half_tick)).await;
        }
    }

    /// Serves one connection until the client or the member closes it, or the stream breaks. `client` is the
    /// client's name for observers.
    async fn serve_connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send, client: &str) {
        // A broken stream ends the connection as a closed one does.
        let _ = Connection::new(self, stream, client).serve().await;
    }

    /// Returns the member's name.
    fn name(&self) -> &str {
        &self.shared.options.names[self.member]
    }

    /// Updates the member's role by the members that it reaches, then calls `act`.
    fn attended<T>(&self, act: impl FnOnce(&mut Core, Now) -> T) -> T {
        let names = self.shared.options.names.iter().enumerate();
        let reaches: Vec<bool> =
            names.map(|(other, name)| other == self.member || self.machine.reaches(name)).collect();
        let mut core = self.core();
        let leader = core.leader().unwrap_or(self.member);
        let now = self.shared.now(self.member, leader);
        core.attend(self.member, &reaches, now);
        let leader = core.leader().unwrap_or(self.member);
        act(&mut core, self.shared.now(self.member, leader))
    }

    /// Passes the changes of a request of `client`, and the request, to the observer.
    fn report(&self, client: &str, operation: &'static str) {
        self.publish(client);
        self.shared.members[self.member].executed.fetch_add(1, Ordering::Relaxed);
        self.shared.options.observer.executed(self.name(), client, operation);
        self.machine.point(operation);
    }

    fn publish(&self, client: &str) {
        let changes = self.core().take_record();
        if !changes.is_empty() {
            self.shared.options.observer.changed(client, &changes);
        }
    }
}

impl<M> Server<M> {
    fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.shared.core)
    }

    /// Returns the session timeout of a client that asks for `millis`.
    fn session_timeout(&self, millis: i32) -> Duration {
        let EnsembleOptions { tick, session_timeouts, .. } = &self.shared.options;
        let bounds = session_timeouts.clone().unwrap_or(*tick * 2..=*tick * 20);
        session::negotiate(millis, &bounds)
    }
}

impl<M: Machine> Shared<M> {
    fn now(&self, own: usize, leader: usize) -> Now {
        let machine = |member: usize| self.members[member].machine.get();
        let nanos = |member: usize| machine(member).map_or(0, Machine::monotonic_nanos);
        let wall_millis = machine(leader).map_or(0, Machine::wall_micros) / 1000;
        let wall_millis = i64::try_from(wall_millis).unwrap_or(i64::MAX);
        Now { own: nanos(own), leader: nanos(leader), wall_millis }
    }
}

/// Stops the member when it is dropped.
struct Up<M: Machine> {
    server: Server<M>,
    life: u64,
}

impl<M: Machine> Drop for Up<M> {
    fn drop(&mut self) {
        self.server.core().stop(self.server.member, self.life);
    }
}

impl<M> Clone for Ensemble<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Machine> Clone for Server<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), member: self.member, machine: self.machine.clone() }
    }
}

impl<M> fmt::Debug for Ensemble<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ensemble").field("names", &self.0.options.names).finish_non_exhaustive()
    }
}

probes! {
    /// The leader ended a session whose timeout was over.
    sometimes session_expired;
}
