//! The servers of a run and what survives their crashes, and who of the workers is done.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::Context;

use resource::Fencing;
use resource::audit::{Event, Kind, Name};
use resource::http::{self, App, Config};
use resource::store::{MemoryStore, RedbStore};

use super::ensemble::Ensemble;
use super::inject::Injector;
use super::machinery::{Machinery, Watch, replicate};
use super::progress::Progress;
use super::workload;
use crate::mutants::Mutant;
use crate::mutants::store::{MutantStore, Rows};
use crate::record::note;
use crate::schedule::{Arm, Kind as ProcessKind, Part, Persistence, Schedule, Store, System, What};
use crate::servers::redis::{self, LockView, Server, ServerOptions};
use crate::world::disk::Disk;
use crate::world::process::ProcessId;
use crate::world::runtime::SimRuntime;
use crate::world::{World, lock};

/// Where workers reach the one Redis: the name follows the primary when a replica is promoted.
pub(super) const LOCK_ADDRESS: &str = "redis:6379";
/// Where workers reach the resource.
pub(super) const RESOURCE_ADDRESS: &str = "resource:80";

/// All that a run starts, stops and starts again.
pub(super) struct Cluster {
    world: World,
    schedule: Arc<Schedule>,
    fencing: Fencing,
    /// The one mistake of the run's locks or of its resource, if it has one.
    mutant: Option<Mutant>,
    /// What a resource with a mistake has stored.
    rows: Rows,
    /// One for each process, by number.
    machines: Vec<Machine>,
    /// The lock server of several members, if it is one.
    ensemble: Mutex<Option<Ensemble>>,
    injector: OnceLock<Weak<Injector>>,
    progress: Progress,
    longest_ttl: u64,
    /// Whether a fault drops an acquire: else nothing need be kept for it.
    may_cancel: bool,
}

/// What a process leaves behind when it dies.
struct Machine {
    disk: Disk,
    server: Mutex<Option<Server<Machinery>>>,
    /// Commands that its servers executed in earlier lives.
    executed: Mutex<u64>,
}

impl Cluster {
    pub(super) fn new(world: &World, schedule: &Schedule, arm: Arm, mutant: Option<Mutant>) -> Arc<Self> {
        let machine = |_| Machine { disk: Disk::new(), server: Mutex::default(), executed: Mutex::default() };
        let ttls = schedule.workers.iter().map(|worker| schedule.ttl_of(worker).as_nanos());
        if let Some(primary) = world.find("redis-1") {
            world.alias("redis", primary);
        }
        Arc::new(Self {
            world: world.clone(),
            fencing: if arm == Arm::Fenced { Fencing::On } else { Fencing::Off },
            mutant,
            rows: Rows::default(),
            machines: world.processes().map(machine).collect(),
            ensemble: Mutex::new(Ensemble::of(world, schedule)),
            injector: OnceLock::new(),
            progress: Progress::new(schedule.workers.len()),
            longest_ttl: ttls.max().unwrap_or_default(),
            may_cancel: schedule.faults.iter().any(|fault| matches!(fault.what, What::Cancel { .. })),
            schedule: Arc::new(schedule.clone()),
        })
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// The mistake of the run's locks, if they have one.
    pub(super) fn lock_mutant(&self) -> Option<Mutant> {
        self.mutant.filter(|mutant| !mutant.is_of_resource())
    }

    /// Makes the faults known, which hear of every command.
    pub(super) fn tell(&self, injector: &Arc<Injector>) {
        let _ = self.injector.set(Arc::downgrade(injector));
    }

    pub(super) fn start_all(self: &Arc<Self>) {
        for id in self.world.processes() {
            let main = self.main(id);
            self.world.spawn(id, main);
        }
    }

    /// Starts a dead process anew.
    pub(super) fn start(self: &Arc<Self>, id: ProcessId) {
        if self.is_worker(id) {
            self.progress.begun(id.0);
        }
        let main = self.main(id);
        self.world.restart(id, main);
    }

    /// Kills a process, with what it had not synced if power is lost.
    pub(super) fn crash(&self, id: ProcessId, power_loss: bool) {
        let machine = &self.machines[id.0];
        machine.disk.crash(power_loss);
        if let Some(server) = lock(&machine.server).take() {
            *lock(&machine.executed) += server.executed();
        }
        self.world.crash(id, power_loss);
        self.progress.died(self.world.process(id).name());
    }

    /// A process that died stays away.
    pub(super) fn gone(&self, id: ProcessId) {
        if self.is_worker(id) {
            self.finished(id);
        }
    }

    /// Ends a server as a clean shutdown does: what it wrote is synced.
    pub(super) fn shut_down(&self, id: ProcessId) {
        if let Some(server) = lock(&self.machines[id.0].server).as_ref() {
            server.shut_down();
        }
    }

    /// The replica takes over: it becomes a primary, and the lock's address leads to it.
    pub(super) fn promote(&self, replica: &str) {
        let Some(id) = self.world.find(replica) else { return };
        if let Some(server) = lock(&self.machines[id.0].server).as_ref() {
            server.promote();
            note(replica, Kind::ServerPromoted { detail: None });
            self.world.alias("redis", id);
        }
    }

    /// The lock servers drop a lock's keys, as under pressure of memory.
    pub(super) fn evict(&self, fault: usize, key: &str, part: Option<Part>) {
        let Ok(key) = workload::lock_key(key) else { return };
        for id in self.primaries() {
            let server = lock(&self.machines[id.0].server).clone();
            let Some(server) = server else { continue };
            let what = part.map_or("keys".to_owned(), |part| format!("{part} key"));
            let text = format!("evicts the {what} of {key}");
            let (fault, verb, detail) = (fault as u64, Name::from("evict"), Name::from(text.as_str()));
            note(self.world.process(id).name(), Kind::FaultApplied { fault, verb, detail });
            let key = key.clone();
            // In the server's own process: it is what it does by itself.
            self.world.spawn(id, async move {
                for (this, name) in [(Part::Owner, key.owner_key()), (Part::Fence, key.fence_key())] {
                    if part.is_none_or(|part| part == this) {
                        server.evict(name.as_bytes());
                    }
                }
            });
        }
    }

    /// A member of an ensemble becomes its leader.
    pub(super) fn lead(&self, fault: usize, member: &str) {
        let Some(id) = self.world.find(member) else { return };
        let ensemble = lock(&self.ensemble).clone();
        let leads = ensemble.is_some_and(|ensemble| ensemble.lead(&self.world, id));
        let text = if leads { "leads from now on" } else { "was to lead, and has no majority" };
        let (fault, verb, detail) = (fault as u64, Name::from("lead"), Name::from(text));
        note(member, Kind::FaultApplied { fault, verb, detail });
    }

    /// The wall clock of a process was set: a server's keys may be due earlier than it believes.
    pub(super) fn clock_changed(&self, id: ProcessId) {
        if let Some(server) = lock(&self.machines[id.0].server).as_ref() {
            server.clock_changed();
        }
    }

    /// The worker drops its acquire when it is next polled.
    pub(super) fn cancel(&self, worker: &str) {
        if let Some(id) = self.world.find(worker) {
            self.progress.cancel(id.0);
        }
    }

    /// Whether the worker's acquire is to be dropped now; else the task is woken when it is.
    pub(super) fn poll_cancelled(&self, id: ProcessId, cx: &mut Context<'_>) -> bool {
        self.may_cancel && self.progress.poll_cancelled(id.0, cx)
    }

    /// A worker has no rounds left.
    pub(super) fn finished(&self, id: ProcessId) {
        self.progress.finished(id.0);
    }

    /// Keeps track of the locks that are held.
    pub(super) fn on_event(&self, event: &Event) {
        self.progress.on_event(event);
    }

    /// Completes when no worker has rounds left, or at the true time `limit`.
    pub(super) async fn served(&self, limit: u64) {
        self.progress.all_finished(&self.world, limit).await;
    }

    /// Completes when what is under way has arrived and no lock is held: at the latest some time after its TTL.
    pub(super) async fn settled(&self, limit: u64) {
        let latency = self.schedule.network.latency.max.as_nanos();
        self.world.sleep_until(self.world.now() + 4 * latency).await;
        let grace = super::key_grace(self.schedule.system).as_nanos() as u64 + 1_000_000_000;
        let limit = limit.max(self.world.now()).min(self.world.now() + self.longest_ttl + grace);
        self.progress.none_held(&self.world, limit).await;
    }

    /// Commands that the lock servers executed so far.
    pub(super) fn commands(&self) -> u64 {
        let count = |machine: &Machine| {
            let running = lock(&machine.server).as_ref().map_or(0, Server::executed);
            *lock(&machine.executed) + running
        };
        let ensemble = lock(&self.ensemble).as_ref().map_or(0, Ensemble::executed);
        self.machines.iter().map(count).sum::<u64>() + ensemble
    }

    /// Drops the servers: they and the world would keep each other alive.
    pub(super) fn forget(&self) {
        for machine in &self.machines {
            lock(&machine.server).take();
        }
        lock(&self.ensemble).take();
    }

    fn is_worker(&self, id: ProcessId) -> bool {
        id.0 < self.schedule.workers.len()
    }

    /// The main task of a process in its next life.
    fn main(self: &Arc<Self>, id: ProcessId) -> Main {
        let cluster = Arc::clone(self);
        match ProcessKind::of(self.world.process(id).name()) {
            ProcessKind::Resource => Box::pin(cluster.serve_resource(id)),
            ProcessKind::Worker => {
                let schedule = Arc::clone(&self.schedule);
                Box::pin(workload::main(cluster, id, schedule, id.0))
            }
            ProcessKind::Redis | ProcessKind::Replica => Box::pin(cluster.serve_redis(id)),
            ProcessKind::Etcd | ProcessKind::ZooKeeper => {
                let ensemble = lock(&self.ensemble).clone();
                let world = self.world.clone();
                Box::pin(async move {
                    if let Some(ensemble) = ensemble {
                        ensemble.member_main(world, id).await;
                    }
                })
            }
        }
    }

    /// The Redis servers that clients reach: the one that its name leads to, or all that stand on their own.
    fn primaries(&self) -> Vec<ProcessId> {
        if self.schedule.system == System::Redis {
            return self.world.find("redis").into_iter().collect();
        }
        let nodes = self.schedule.servers();
        nodes.iter().filter_map(|name| self.world.find(name)).collect()
    }

    async fn serve_redis(self: Arc<Self>, id: ProcessId) {
        let name = self.world.process(id).name().to_owned();
        let server = self.new_server(id, &name);
        // A fault may have waited for what a server does as it starts, and have killed it: the dead don't listen, or the
        // next life would find its address taken.
        if !self.world.process(id).is_alive() {
            return;
        }
        *lock(&self.machines[id.0].server) = Some(server.clone());
        if self.schedule.redis.replica && name == "replica-1" {
            self.world.spawn(id, replicate(self.world.clone(), id, server.clone()));
        }
        let background = server.clone();
        self.world.spawn(id, async move { background.background().await });
        // The address is the process's own: nobody else can have it.
        let Ok(mut listener) = self.world.listen(id, &format!("{name}:6379")) else { return };
        loop {
            let (stream, client) = listener.accept().await;
            let server = server.clone();
            self.world.spawn(id, async move { server.serve_connection(stream, &client).await });
        }
    }

    fn new_server(&self, id: ProcessId, name: &str) -> Server<Machinery> {
        let mut options = ServerOptions::new(name);
        options.observer = Arc::new(Watch {
            locks: LockView,
            server: name.to_owned(),
            injector: self.injector.get().cloned().unwrap_or_default(),
        });
        options.persistence = match self.schedule.redis.persistence {
            Persistence::None => redis::Persistence::None,
            Persistence::EverySec => {
                redis::Persistence::EverySecond(Arc::new(self.machines[id.0].disk.open()))
            }
            Persistence::Always => redis::Persistence::Always(Arc::new(self.machines[id.0].disk.open())),
        };
        options.is_replica = name == "replica-1" && self.world.process(id).life() == 0;
        let server = Server::new(options, Machinery { world: self.world.clone(), process: id });
        if self.schedule.redis.fence_start > 0 && self.world.process(id).life() == 0 {
            for key in self.schedule.keys.iter().filter_map(|key| workload::lock_key(key).ok()) {
                let start = self.schedule.redis.fence_start.to_string();
                server.preset(key.fence_key().as_bytes(), start.as_bytes());
            }
        }
        server
    }

    async fn serve_resource(self: Arc<Self>, id: ProcessId) {
        let config = Config { fencing: self.fencing, ..Config::default() };
        let mistake = self.mutant.filter(|mutant| mutant.is_of_resource());
        let app = match (mistake, self.schedule.resource.store) {
            (Some(mutant), _) => {
                let runtime = SimRuntime::new(&self.world, id);
                App::new(Arc::new(MutantStore::new(mutant, runtime, &self.rows)), config)
            }
            (None, Store::Memory) => App::new(Arc::new(MemoryStore::new()), config),
            (None, Store::Redb) => match RedbStore::create(self.machines[id.0].disk.open()) {
                Ok(store) => App::new(Arc::new(store), config),
                Err(error) => {
                    note(
                        "resource",
                        Kind::ServerStopped { detail: Some(Name::from(error.to_string().as_str())) },
                    );
                    return;
                }
            },
        };
        let Ok(mut listener) = self.world.listen(id, RESOURCE_ADDRESS) else { return };
        loop {
            let (stream, _) = listener.accept().await;
            let serving = http::serve_connection(stream, &app);
            // A connection that breaks is its client's affair.
            self.world.spawn(id, async move { drop(serving.await) });
        }
    }
}

type Main = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
