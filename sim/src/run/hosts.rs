//! The simulated servers that a schedule's system has.

use std::sync::Arc;
use std::time::Duration;

use resource::Fencing;
use resource::http::{App, Config};

use super::cluster::LOCK_NAME;
use super::workload;
use crate::mutants::Mutant;
use crate::mutants::store::{MutantStore, Rows};
use crate::schedule::{Kind, Persistence, Schedule, Store, System};
use crate::servers::host::Host;
use crate::servers::redis::{self, RedisHost};
use crate::servers::resource::ResourceHost;
use crate::servers::{etcd, zookeeper};
use crate::world::machine::WorldMachine;
use crate::world::runtime::SimRuntime;

/// Where the replica reaches the primary.
const PRIMARY_ADDRESS: &str = "redis-1:6379";

/// ZooKeeper's `tickTime` in a run: sessions of 1 to 10 s, which expire at whole ticks.
const ZOOKEEPER_TICK: Duration = Duration::from_millis(500);

/// The servers of `schedule` by the names of their processes. `mutant` is the one mistake of the resource, if
/// it has one.
pub(super) fn hosts(
    schedule: &Schedule,
    fencing: Fencing,
    mutant: Option<Mutant>,
) -> Vec<(String, Arc<dyn Host>)> {
    let mut hosts = servers(schedule);
    hosts.push((Kind::Resource.name().to_owned(), Arc::new(resource(schedule, fencing, mutant))));
    hosts
}

fn servers(schedule: &Schedule) -> Vec<(String, Arc<dyn Host>)> {
    match schedule.system {
        System::Redis | System::Redlock => redis(schedule),
        System::Etcd => etcd(schedule),
        System::ZooKeeper => zookeeper(schedule),
    }
}

fn redis(schedule: &Schedule) -> Vec<(String, Arc<dyn Host>)> {
    let host = |name: String| {
        let mut host = RedisHost::new().persistence(persistence(schedule));
        if schedule.system == System::Redis {
            host = host.primary_name(LOCK_NAME);
        }
        if Kind::of(&name) == Kind::Replica {
            host = host.replica_of(PRIMARY_ADDRESS);
        }
        (name, Arc::new(preset(host, schedule)) as Arc<dyn Host>)
    };
    schedule.servers().into_iter().map(host).collect()
}

fn etcd(schedule: &Schedule) -> Vec<(String, Arc<dyn Host>)> {
    let mut options = etcd::ClusterOptions::new(Kind::Etcd.name(), schedule.servers());
    options.rechecks_waiters = !schedule.etcd.trusts_waiters;
    let cluster = etcd::Cluster::new(options);
    let host = |name: String| {
        let member = cluster.member(&name)?;
        Some((name, Arc::new(member) as Arc<dyn Host>))
    };
    schedule.servers().into_iter().filter_map(host).collect()
}

fn zookeeper(schedule: &Schedule) -> Vec<(String, Arc<dyn Host>)> {
    let mut options = zookeeper::EnsembleOptions::new(schedule.servers());
    options.tick = ZOOKEEPER_TICK;
    let ensemble = zookeeper::Ensemble::new(options);
    let host = |name: String| {
        let member = ensemble.member(&name)?;
        Some((name, Arc::new(member) as Arc<dyn Host>))
    };
    schedule.servers().into_iter().filter_map(host).collect()
}

/// Sets the fence counters to what the schedule has them start at.
fn preset(host: RedisHost, schedule: &Schedule) -> RedisHost {
    if schedule.redis.fence_start == 0 {
        return host;
    }
    let start = schedule.redis.fence_start.to_string();
    let keys = schedule.keys.iter().filter_map(|key| workload::lock_key(key).ok());
    keys.fold(host, |host, key| host.preset(key.fence_key(), start.as_str()))
}

fn persistence(schedule: &Schedule) -> redis::Persistence {
    match schedule.redis.persistence {
        Persistence::None => redis::Persistence::None,
        Persistence::EverySec => redis::Persistence::EverySecond,
        Persistence::Always => redis::Persistence::Always,
    }
}

fn resource(schedule: &Schedule, fencing: Fencing, mutant: Option<Mutant>) -> ResourceHost {
    let config = Config { fencing, ..Config::default() };
    match (mutant, schedule.resource.store) {
        (Some(mutant), _) => {
            let rows = Rows::default();
            ResourceHost::new(mutant != Mutant::ForgetsOnRestart, move |machine: &WorldMachine| {
                let runtime = SimRuntime::new(machine.world(), machine.process());
                Ok(App::new(Arc::new(MutantStore::new(mutant, runtime, &rows)), config))
            })
        }
        (None, Store::Memory) => ResourceHost::in_memory(config),
        (None, Store::Redb) => ResourceHost::on_disk(config),
    }
}
