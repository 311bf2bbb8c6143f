//! The simulated servers of the laboratory's systems, and the resource.

use std::sync::Arc;
use std::time::Duration;

use resource::Fencing;
use resource::http::{App, Config};

use super::options::Options;
use super::point::Kind;
use super::servers::{Persistence, Store, System};
use super::workloads;
use crate::mutants::Mutant;
use crate::mutants::store::{MutantStore, Rows};
use crate::servers::host::Host;
use crate::servers::redis::{self, RedisHost};
use crate::servers::resource::ResourceHost;
use crate::servers::{etcd, zookeeper};
use crate::world::machine::WorldMachine;
use crate::world::runtime::SimRuntime;

/// The name that leads to the one Redis, or to its replica once that is promoted.
pub(super) const LOCK_NAME: &str = "redis";

/// Where the replica reaches the primary.
const PRIMARY_ADDRESS: &str = "redis-1:6379";

/// ZooKeeper's `tickTime` in a run: sessions of 1 to 10 s, which expire at whole ticks.
const ZOOKEEPER_TICK: Duration = Duration::from_millis(500);

/// The servers of `options` by the names of their processes. `mutant` is the one mistake of the resource, if it has one.
pub(super) fn hosts(
    options: &Options,
    fencing: Fencing,
    mutant: Option<Mutant>,
) -> Vec<(String, Arc<dyn Host>)> {
    let mut hosts = servers(options);
    hosts.push((Kind::Resource.name().to_owned(), Arc::new(resource(options, fencing, mutant))));
    hosts
}

fn servers(options: &Options) -> Vec<(String, Arc<dyn Host>)> {
    match options.system {
        System::Redis | System::Redlock => redis(options),
        System::Etcd => etcd(options),
        System::ZooKeeper => zookeeper(options),
    }
}

fn redis(options: &Options) -> Vec<(String, Arc<dyn Host>)> {
    let host = |name: String| {
        let mut host = RedisHost::new().persistence(persistence(options));
        if options.system == System::Redis {
            host = host.primary_name(LOCK_NAME);
        }
        if options.kind_of(&name) == Some(Kind::Replica) {
            host = host.replica_of(PRIMARY_ADDRESS);
        }
        (name, Arc::new(preset(host, options)) as Arc<dyn Host>)
    };
    options.servers().into_iter().map(host).collect()
}

fn etcd(options: &Options) -> Vec<(String, Arc<dyn Host>)> {
    let mut setup = etcd::ClusterOptions::new(Kind::Etcd.name(), options.servers());
    setup.rechecks_waiters = !options.etcd.trusts_waiters;
    let cluster = etcd::Cluster::new(setup);
    let host = |name: String| {
        let member = cluster.member(&name)?;
        Some((name, Arc::new(member) as Arc<dyn Host>))
    };
    options.servers().into_iter().filter_map(host).collect()
}

fn zookeeper(options: &Options) -> Vec<(String, Arc<dyn Host>)> {
    let mut setup = zookeeper::EnsembleOptions::new(options.servers());
    setup.tick = ZOOKEEPER_TICK;
    let ensemble = zookeeper::Ensemble::new(setup);
    let host = |name: String| {
        let member = ensemble.member(&name)?;
        Some((name, Arc::new(member) as Arc<dyn Host>))
    };
    options.servers().into_iter().filter_map(host).collect()
}

/// Sets the fence counters to the number that the options give start at.
fn preset(host: RedisHost, options: &Options) -> RedisHost {
    if options.redis.fence_start == 0 {
        return host;
    }
    let start = options.redis.fence_start.to_string();
    let keys = options.keys.iter().filter_map(|key| workloads::lock_key(key).ok());
    keys.fold(host, |host, key| host.preset(key.fence_key(), start.as_str()))
}

fn persistence(options: &Options) -> redis::Persistence {
    match options.redis.persistence {
        Persistence::None => redis::Persistence::None,
        Persistence::EverySec => redis::Persistence::EverySecond,
        Persistence::Always => redis::Persistence::Always,
    }
}

fn resource(options: &Options, fencing: Fencing, mutant: Option<Mutant>) -> ResourceHost {
    let config = Config { fencing, ..Config::default() };
    match (mutant, options.resource.store) {
        (Some(mutant), store) => {
            let rows = Rows::default();
            // The same faults apply to it as to the correct one, and one that forgets is to be caught by them.
            ResourceHost::new(store == Store::Redb, move |machine: &WorldMachine| {
                let runtime = SimRuntime::new(machine.world(), machine.process());
                Ok(App::new(Arc::new(MutantStore::new(mutant, runtime, &rows)), config))
            })
        }
        (None, Store::Memory) => ResourceHost::in_memory(config),
        (None, Store::Redb) => ResourceHost::on_disk(config),
    }
}
