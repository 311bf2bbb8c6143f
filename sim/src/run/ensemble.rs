//! The lock servers that are several members of one: etcd and ZooKeeper.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::machinery::Machinery;
use crate::record::tell;
use crate::schedule::{Kind, Schedule, System};
use crate::servers::etcd::{self, LockChange, SimMembers};
use crate::servers::zookeeper::{self, Change, LockView};
use crate::world::World;
use crate::world::process::ProcessId;

/// ZooKeeper's `tickTime` in a run: sessions of 1 to 10 s, which expire at whole ticks.
const TICK: Duration = Duration::from_millis(500);

/// One lock server of several members, whose data outlive the processes of all of them.
#[derive(Clone)]
pub(super) enum Ensemble {
    Etcd { cluster: etcd::Cluster<SimMembers>, members: Vec<ProcessId> },
    ZooKeeper { ensemble: zookeeper::Ensemble<Machinery>, executed: Arc<AtomicU64> },
}

impl Ensemble {
    /// The ensemble of the schedule's system, if it has one.
    pub(super) fn of(world: &World, schedule: &Schedule) -> Option<Self> {
        let names = schedule.servers();
        match schedule.system {
            System::Redis | System::Redlock => None,
            System::Etcd => {
                let members: Vec<_> = names.iter().filter_map(|name| world.find(name)).collect();
                let processes = SimMembers::new(world, &members);
                let mut options = processes.options(Kind::Etcd.name());
                options.observer = Arc::new(EtcdWatch);
                options.rechecks_waiters = !schedule.etcd.trusts_waiters;
                Some(Self::Etcd { cluster: etcd::Cluster::new(options, processes), members })
            }
            System::ZooKeeper => {
                let executed = Arc::new(AtomicU64::new(0));
                let mut options = zookeeper::EnsembleOptions::new(names);
                options.tick = TICK;
                let locks = LockView::default();
                options.observer = Arc::new(ZooKeeperWatch { locks, executed: Arc::clone(&executed) });
                Some(Self::ZooKeeper { ensemble: zookeeper::Ensemble::new(options), executed })
            }
        }
    }

    /// What the process of a member runs, in each of its lives.
    pub(super) async fn member_main(self, world: World, id: ProcessId) {
        match self {
            Self::Etcd { cluster, members } => {
                if let Some(member) = members.iter().position(|member| *member == id) {
                    cluster.member_main(member).await;
                }
            }
            Self::ZooKeeper { ensemble, .. } => serve_zookeeper(&ensemble, &world, id).await,
        }
    }

    /// Has the member `id` lead from now on, if it and a majority are in touch.
    pub(super) fn lead(&self, world: &World, id: ProcessId) -> bool {
        match self {
            Self::Etcd { cluster, members } => {
                let member = members.iter().position(|member| *member == id);
                member.is_some_and(|member| cluster.move_leader(member))
            }
            Self::ZooKeeper { ensemble, .. } => ensemble.move_leader(world.process(id).name()),
        }
    }

    /// Requests that the members carried out.
    pub(super) fn executed(&self) -> u64 {
        match self {
            Self::Etcd { cluster, .. } => cluster.executed(),
            Self::ZooKeeper { executed, .. } => executed.load(Ordering::Relaxed),
        }
    }
}

async fn serve_zookeeper(ensemble: &zookeeper::Ensemble<Machinery>, world: &World, id: ProcessId) {
    let name = world.process(id).name().to_owned();
    let Some(server) = ensemble.member(&name, Machinery { world: world.clone(), process: id }) else {
        return;
    };
    let Ok(mut listener) = world.listen(id, &format!("{name}:2181")) else { return };
    let member = server.clone();
    world.spawn(id, async move { member.run().await });
    loop {
        let (stream, client) = listener.accept().await;
        let server = server.clone();
        world.spawn(id, async move { server.serve_connection(stream, &client).await });
    }
}

/// Tells the history what etcd does to locks.
struct EtcdWatch;

impl etcd::Observer for EtcdWatch {
    fn locks_changed(&self, client: &str, changes: &[LockChange]) {
        changes.iter().for_each(|change| tell(Kind::Etcd.name(), change.kind(client)));
    }
}

/// Tells the history what ZooKeeper does to locks, and counts requests.
struct ZooKeeperWatch {
    locks: LockView,
    executed: Arc<AtomicU64>,
}

impl zookeeper::Observer for ZooKeeperWatch {
    fn changed(&self, client: &str, changes: &[Change]) {
        self.locks.changed(client, changes);
    }

    fn executed(&self, _: &str, _: &str, _: &'static str) {
        self.executed.fetch_add(1, Ordering::Relaxed);
    }
}
