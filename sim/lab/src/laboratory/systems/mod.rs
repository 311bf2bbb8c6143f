//! The lock systems of the laboratory, one file each with one row in `SYSTEMS`: its servers, its rules, its
//! random options, and its lock.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dlock::{AnyBackend, LockKey};
use futures_util::future::BoxFuture;
use history::Name;
use sim::entropy::Site;
use sim::faults::Class;
use sim::servers::host::Host;
use sim::world::runtime::SimRuntime;
use sim::{FieldPath, Invalid, Schedule, Sim, Span, UnknownName};

use super::given::{Correct, StoredLock, Workplace};
use super::options::Options;
use super::point::{Point, ProcessKind};
use super::rounds::{apart, work};
use super::seat::{Seat, lock_key};
use super::servers::{Durability, Redis as RedisServers};
use super::system::System;
use super::wider::Wider;

mod etcd;
mod postgres;
mod redis;
mod redlock;
mod tls;
mod toy;
mod zookeeper;

/// All lock systems, in the order in which tables list them.
static SYSTEMS: &[&dyn LockSystem] =
    &[&redis::One, &redlock::Majority, &etcd::Cluster, &zookeeper::Ensemble, &postgres::Queue, &toy::Toy];

impl System {
    /// Returns all systems.
    pub fn all() -> impl Iterator<Item = Self> {
        SYSTEMS.iter().map(|system| system.name())
    }

    /// Returns the systems that a search draws: those of locks, and the job queue of PostgreSQL. Leaves out
    /// the examples.
    pub fn searched() -> impl Iterator<Item = Self> {
        SYSTEMS.iter().filter(|system| !system.is_example()).map(|system| system.name())
    }

    /// Returns the systems of [`searched`](Self::searched) that have a lock.
    pub fn of_locks() -> impl Iterator<Item = Self> {
        Self::searched().filter(|system| system.has_lock())
    }

    /// Returns true if it has a lock: the job queue of PostgreSQL has none.
    pub fn has_lock(self) -> bool {
        self.get().has_lock()
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Returns the name for people, with the number of servers of the [small](super::small) workload.
    pub fn title(self) -> &'static str {
        self.get().title()
    }

    /// Returns true if the system can have faults of the class.
    pub fn has_class(self, class: &Class) -> bool {
        let (system, needs) = (self.get(), class.needs);
        let offers = |needed: &str| system.actions().iter().any(|(action, _)| *action == needed);
        !system.is_example() && system.has_lock() && needs.is_none_or(offers)
    }

    /// Returns the names for people of the systems whose servers offer this action of a fault.
    pub(super) fn offering(action: &str) -> Vec<&'static str> {
        let offers =
            |system: &&&dyn LockSystem| system.actions().iter().any(|(offered, _)| *offered == action);
        let title = |system: &&dyn LockSystem| system.title().split(',').next().unwrap_or_default();
        SYSTEMS.iter().filter(offers).map(title).collect()
    }

    /// Returns the definition of the system.
    pub(super) fn get(self) -> &'static dyn LockSystem {
        SYSTEMS[self.row()]
    }

    /// Returns the position in the table. Only rows of the table make a `System`.
    fn row(self) -> usize {
        SYSTEMS.iter().position(|system| system.name() == self).unwrap_or_default()
    }
}

impl PartialOrd for System {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for System {
    fn cmp(&self, other: &Self) -> Ordering {
        self.row().cmp(&other.row())
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let known: Vec<_> = Self::all().map(Self::name).collect();
        let named = Self::all().find(|system| system.0 == name);
        named.ok_or_else(|| UnknownName::new("system", name, &known))
    }
}

history::as_text!(System, "the name of the system");

impl Workplace<'_> {
    /// Makes the library's lock of the worker's system; `None` for a system that the library does not have.
    pub fn library_lock(&self) -> Option<AnyBackend<SimRuntime>> {
        self.options.system.get().library_lock(self)
    }
}

/// A lock system of the laboratory.
pub(super) trait LockSystem: Sync {
    /// Returns its name.
    fn name(&self) -> System;

    /// Returns its name for people, with the number of servers of the small workload.
    fn title(&self) -> &'static str;

    /// Returns true if it is an example, which is not drawn, compared or searched with the others.
    fn is_example(&self) -> bool {
        false
    }

    /// Returns true if it has a lock to be compared with the others.
    fn has_lock(&self) -> bool {
        true
    }

    /// Returns the lock servers with their kinds, in order.
    fn servers(&self, options: &Options) -> Vec<(String, ProcessKind)>;

    /// Returns the servers as hosts, in the same order. Their histories have the locks in `stored`, too, each
    /// with its key in the schedule.
    fn hosts(&self, options: &Options, stored: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)>;

    /// Returns true if a lock may be stored as a queue of keys.
    fn has_queues(&self) -> bool {
        false
    }

    /// Returns the addresses of the lock servers for this worker.
    fn addresses(&self, seat: &Seat<'_>) -> Vec<String>;

    /// Works all rounds of a worker that holds the lock while it writes.
    fn work<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        if let Some(rounds) = seat.given_rounds(|| self.addresses(&seat)) {
            return rounds;
        }
        match seat.given_lock(|| self.addresses(&seat)) {
            Some(lock) => apart(work(seat, lock)),
            None if seat.options.tls => apart(work_over_tls(seat, self.tls_scheme(), self.addresses(&seat))),
            None => self.work_with_own(seat),
        }
    }

    /// Returns the scheme of its URLs over TLS; `None` if its servers don't speak it.
    fn tls_scheme(&self) -> Option<&'static str> {
        None
    }

    /// Works all rounds with the system's own lock.
    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()>;

    /// Makes the library's lock of the worker at `place`; `None` if the library has no such lock.
    fn library_lock(&self, place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
        let _ = place;
        None
    }

    /// Returns the name of the cluster in the history, with the kind of its members; `None` if the servers
    /// are no cluster.
    fn cluster(&self) -> Option<(&'static str, ProcessKind)> {
        None
    }

    /// Adds to the world what it needs beyond the servers, such as other names for them.
    fn prepare(&self, sim: &mut Sim) {
        let _ = sim;
    }

    /// Returns the table of schedule files that has its servers' options; `None` if they have none.
    fn table(&self) -> Option<&'static str> {
        None
    }

    /// Checks the options in its table. Refuses one that does not apply to the system.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option.
    fn check(&self, options: &Options) -> Result<(), Invalid> {
        let _ = options;
        Ok(())
    }

    /// Checks the TTL at `path`, beyond what the library demands.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no lease can have this TTL.
    fn check_ttl(&self, path: &FieldPath, ttl: Span) -> Result<(), Invalid> {
        let _ = (path, ttl);
        Ok(())
    }

    /// Returns the actions of faults that its servers offer, each with the kind of these servers.
    fn actions(&self) -> &'static [(&'static str, ProcessKind)] {
        &[]
    }

    /// Deploys servers for a class of faults that needs this action, or none.
    fn deploy_for(&self, action: Option<&str>, options: &mut Options) {
        let _ = (action, options);
    }

    /// Returns the data that a server keeps when its process ends.
    fn durability(&self, options: &Options) -> Durability {
        let _ = options;
        Durability::Majority
    }

    /// Returns true if keys expire by the wall clock of their server.
    fn expires_keys(&self) -> bool {
        false
    }

    /// Returns the reason why a server never passes a point of its kind; `None` if it may pass it.
    fn never_passes(&self, schedule: &Schedule<Options>, server: &str, point: Point) -> Option<&'static str> {
        let _ = (schedule, server, point);
        None
    }

    /// Returns true if workers may release by GET and DEL.
    fn has_get_del(&self) -> bool {
        false
    }

    /// Returns true if the library's lock can be a semaphore.
    fn has_permits(&self) -> bool {
        false
    }

    /// Returns true if the library's lock can have readers and a writer.
    fn has_readers(&self) -> bool {
        self.has_permits()
    }

    /// Returns true if the servers may lose a key by eviction.
    fn evicts(&self) -> bool {
        false
    }

    /// Returns the servers of which a majority is enough; none if all are needed.
    fn quorum(&self, options: &Options) -> Vec<String> {
        let _ = options;
        Vec::new()
    }

    /// Returns true if the servers talk to each other.
    fn has_links(&self) -> bool {
        true
    }

    /// Returns the names under which servers pass points: one for each server, or one for a cluster.
    fn speakers(&self, options: &Options) -> Vec<String>;

    /// Returns the servers whose keys decide who holds the lock, by their names in the history; empty if the
    /// keys don't name their owners.
    fn voters(&self, options: &Options) -> Vec<Name> {
        self.speakers(options).iter().map(|name| Name::from(name.as_str())).collect()
    }

    /// Returns true if the lock promises first come, first served.
    fn is_fair(&self, options: &Options) -> bool {
        let _ = options;
        false
    }

    /// Returns the longest delay until the servers drop an expired key.
    fn key_grace(&self, options: &Options) -> Duration;

    /// Returns its weight when a system is drawn, relative to the others.
    fn weight(&self) -> usize {
        1
    }

    /// Returns the TTLs that are drawn, in milliseconds.
    fn ttls_millis(&self) -> &'static [u64];

    /// Draws the options of the servers. `redis` has the drawn options of a single Redis.
    fn draw(&self, site: &mut Site, redis: RedisServers, options: &mut Options) {
        let _ = (site, redis, options);
    }

    /// Changes drawn options that the system can't have.
    fn suit(&self, options: &mut Options, site: &mut Site) {
        let _ = (options, site);
    }

    /// Returns the rarer changes of its options that searches draw.
    fn wider(&self) -> &'static [Wider] {
        &[]
    }

    /// Returns simpler options of its servers, for shrinking. Some are not valid.
    fn simpler(&self, options: &Options) -> Vec<Options> {
        let _ = options;
        Vec::new()
    }

    /// Sets the servers of the small workload, which lose no acknowledged write.
    fn small(&self, options: &mut Options) {
        let _ = options;
    }
}

/// Works all rounds with the library's lock `B`.
async fn work_with<B: Correct>(seat: Seat<'_>, servers: Vec<String>) {
    // The schedule was validated, so the lock can use the servers.
    let lock = B::at(&seat.workplace(servers));
    if let Some(lock) = lock {
        work(seat, lock).await;
    }
}

/// Works all rounds with the library's lock over TLS.
async fn work_over_tls(seat: Seat<'_>, scheme: Option<&str>, servers: Vec<String>) {
    // The schedule was validated, so there is a scheme, and the lock can use the servers.
    if let Some(lock) = scheme.and_then(|scheme| tls::lock(scheme, &seat.workplace(servers))) {
        work(seat, lock).await;
    }
}

/// Returns `prefix-1` to `prefix-count`, each of this kind.
fn numbered(prefix: &str, count: u32, kind: ProcessKind) -> Vec<(String, ProcessKind)> {
    (1..=count).map(|number| (format!("{prefix}-{number}"), kind)).collect()
}

/// Returns the locks that are semaphores, with their numbers of permits.
fn semaphores(options: &Options) -> impl Iterator<Item = (LockKey, usize)> {
    let permits = options.permits.map(|permits| permits as usize);
    options.keys.iter().filter_map(move |key| Some((lock_key(key).ok()?, permits?)))
}

/// Returns the names of the servers.
fn names(servers: &[(String, ProcessKind)]) -> Vec<String> {
    servers.iter().map(|(name, _)| name.clone()).collect()
}

/// Number of members of an etcd cluster or a ZooKeeper ensemble.
const MEMBERS: u32 = 3;

/// Longest delay until a cluster drops an expired key: etcd checks every 500 ms, ZooKeeper at whole ticks of
/// 500 ms. The keepalives of a live client also restart the TTL of its session.
const SESSION_GRACE: Duration = Duration::from_millis(1500);
