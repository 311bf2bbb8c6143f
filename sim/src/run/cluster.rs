//! The servers of a run and what survives their crashes, and who of the workers is done.

use std::sync::Arc;
use std::task::Context;

use resource::Fencing;
use resource::audit::{Event, Kind, Name};

use super::hosts::hosts;
use super::progress::Progress;
use super::workload;
use crate::mutants::Mutant;
use crate::record::note;
use crate::schedule::{Arm, Part, Schedule, System, What};
use crate::servers::host::{Acted, Host};
use crate::world::World;
use crate::world::machine::WorldMachine;
use crate::world::process::ProcessId;

/// The name that leads to the one Redis, or to its replica once that is promoted.
pub(super) const LOCK_NAME: &str = "redis";
/// Where workers reach the one Redis.
pub(super) const LOCK_ADDRESS: &str = "redis:6379";
/// Where workers reach the resource.
pub(super) const RESOURCE_ADDRESS: &str = "resource:80";

/// All that a run starts, stops and starts again.
pub(super) struct Cluster {
    world: World,
    schedule: Arc<Schedule>,
    /// The one mistake of the run's locks or of its resource, if it has one.
    mutant: Option<Mutant>,
    /// The server of each process, by number; a worker has none.
    hosts: Vec<Option<Arc<dyn Host>>>,
    progress: Progress,
    longest_ttl: u64,
    /// Whether a fault drops an acquire: else nothing need be kept for it.
    may_cancel: bool,
}

impl Cluster {
    pub(super) fn new(world: &World, schedule: &Schedule, arm: Arm, mutant: Option<Mutant>) -> Arc<Self> {
        let ttls = schedule.workers.iter().map(|worker| schedule.ttl_of(worker).as_nanos());
        let fencing = if arm == Arm::Fenced { Fencing::On } else { Fencing::Off };
        let hosts = hosts(schedule, fencing, mutant.filter(|mutant| mutant.is_of_resource()));
        let host_of = |id| {
            let found = hosts.iter().find(|(name, _)| name == world.process(id).name());
            found.map(|(_, host)| Arc::clone(host))
        };
        Arc::new(Self {
            world: world.clone(),
            mutant,
            hosts: world.processes().map(host_of).collect(),
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
        if let Some(host) = self.host(id) {
            host.died();
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
        if let Some(host) = self.host(id) {
            host.shut_down();
        }
    }

    /// The replica takes over: it becomes a primary, and the lock's address leads to it.
    pub(super) fn promote(&self, replica: &str) {
        if let Some(host) = self.world.find(replica).and_then(|id| self.host(id)) {
            // A replica that is down stays one.
            let _ = host.act("promote", None);
        }
    }

    /// The lock servers drop a lock's keys, as under pressure of memory.
    pub(super) fn evict(&self, key: &str, part: Option<Part>) {
        let Ok(key) = workload::lock_key(key) else { return };
        let parts = [(Part::Owner, key.owner_key()), (Part::Fence, key.fence_key())];
        let wanted = parts.iter().filter(|(this, _)| part.is_none_or(|part| part == *this));
        let keys: Vec<_> = wanted.map(|(_, key)| key.to_string()).collect();
        let what = part.map_or("keys".to_owned(), |part| format!("{part} key"));
        let text = format!("evicts the {what} of {key}");
        for id in self.primaries() {
            let Some(host) = self.host(id) else { continue };
            if let Ok(Acted::Done(_)) = host.act("evict", Some(&keys.join(" "))) {
                note(self.world.process(id).name(), Kind::FaultApplied { detail: Name::from(text.as_str()) });
            }
        }
    }

    /// A member of a cluster becomes its leader.
    pub(super) fn lead(&self, member: &str) {
        let Some(host) = self.world.find(member).and_then(|id| self.host(id)) else { return };
        if let Ok(Acted::Done(text) | Acted::Failed(text)) = host.act("lead", None) {
            note(member, Kind::FaultApplied { detail: Name::from(text.as_str()) });
        }
    }

    /// The wall clock of a process was set: a server's keys may be due earlier than it believes.
    pub(super) fn clock_changed(&self, id: ProcessId) {
        if let Some(host) = self.host(id) {
            host.clock_set();
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
        self.hosts.iter().flatten().map(|host| host.executed()).sum()
    }

    /// Drops the servers: they and the world would keep each other alive.
    pub(super) fn forget(&self) {
        self.hosts.iter().flatten().for_each(|host| host.close());
    }

    fn host(&self, id: ProcessId) -> Option<&Arc<dyn Host>> {
        self.hosts.get(id.0)?.as_ref()
    }

    fn is_worker(&self, id: ProcessId) -> bool {
        id.0 < self.schedule.workers.len()
    }

    /// The main task of a process in its next life.
    fn main(self: &Arc<Self>, id: ProcessId) -> Main {
        if let Some(host) = self.host(id) {
            return host.start(WorldMachine::new(&self.world, id));
        }
        let (cluster, schedule) = (Arc::clone(self), Arc::clone(&self.schedule));
        Box::pin(workload::main(cluster, id, schedule, id.0))
    }

    /// The Redis servers that clients reach: the one that its name leads to, or all that stand on their own.
    fn primaries(&self) -> Vec<ProcessId> {
        if self.schedule.system == System::Redis {
            return self.world.find("redis").into_iter().collect();
        }
        let nodes = self.schedule.servers();
        nodes.iter().filter_map(|name| self.world.find(name)).collect()
    }
}

type Main = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
