//! The lock servers of a long run, whichever kind they are.

use super::ChaosError;
use super::Configuration;
use super::fault::{FaultKind, Server};
use crate::faults::{Direction, Link, Proxy, WallClock};
use crate::servers::{EtcdCluster, Persistence, Process, Redis, ServerError, Stage, ZooKeeperEnsemble};
use crate::systems::System;

/// The lock servers.
pub(super) struct Locks {
    kind: Kind,
    names: Vec<String>,
    /// One for each Redis, where clocks are to be set.
    clocks: Vec<WallClock>,
}

enum Kind {
    /// A primary and a replica, which changes places with it.
    Redis {
        nodes: Vec<Redis>,
        primary: usize,
        replication: Proxy,
    },
    Redlock(Vec<Redis>),
    Etcd(EtcdCluster),
    ZooKeeper(ZooKeeperEnsemble),
}

impl Locks {
    /// Starts them and waits until they are ready. What Redis acknowledges is on its disk: it is lost when a fault says so
    /// and not by chance.
    pub(super) fn start(stage: &Stage, configuration: &Configuration) -> Result<Self, ChaosError> {
        let count = configuration.servers();
        let name = configuration.system.as_str();
        let names: Vec<_> = (1..=count).map(|n| format!("{name}-{n}")).collect();
        let clocks = if configuration.kinds().any(|kind| kind == FaultKind::StepClock) {
            names.iter().map(|name| WallClock::new(stage, name)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let redis = || {
            let start = |(n, name): (usize, &String)| match clocks.get(n) {
                Some(clock) => Redis::start_with(stage, name, Persistence::Always, &clock.environment()),
                None => Redis::start(stage, name, Persistence::Always),
            };
            names.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()
        };
        let kind = match configuration.system {
            System::Redis => {
                let mut nodes = redis()?;
                let replication = tokio::runtime::Handle::current()
                    .block_on(Proxy::start(&nodes[0].address()))
                    .map_err(ChaosError::Proxy)?;
                nodes[1].follow(replication.port())?;
                Kind::Redis { nodes, primary: 0, replication }
            }
            System::Redlock => Kind::Redlock(redis()?),
            System::Etcd => Kind::Etcd(EtcdCluster::start(stage)?),
            System::Zookeeper => Kind::ZooKeeper(ZooKeeperEnsemble::start(stage)?),
        };
        Ok(Self { kind, names, clocks })
    }

    /// The name of a server, as the history has it.
    pub(super) fn name(&self, server: usize) -> &str {
        self.names.get(server).map_or("?", String::as_str)
    }

    /// The addresses that workers are to reach, each in its place: of Redis that of the primary alone.
    pub(super) fn places(&self) -> Vec<String> {
        match &self.kind {
            Kind::Redis { nodes, primary, .. } => vec![nodes[*primary].address()],
            Kind::Redlock(nodes) => nodes.iter().map(Redis::address).collect(),
            Kind::Etcd(cluster) => cluster.addresses(),
            Kind::ZooKeeper(ensemble) => ensemble.addresses(),
        }
    }

    /// In which place workers know a server.
    pub(super) fn place(&self, server: usize) -> usize {
        if let Kind::Redis { .. } = self.kind { 0 } else { server }
    }

    /// The one that leads; the first if none does, or all are alike.
    pub(super) fn leader(&self) -> usize {
        match &self.kind {
            Kind::Redis { primary, .. } => *primary,
            Kind::Redlock(_) => 0,
            Kind::Etcd(cluster) => cluster.leader().unwrap_or(0),
            Kind::ZooKeeper(ensemble) => ensemble.leader().unwrap_or(0),
        }
    }

    pub(super) fn process(&mut self, server: usize) -> &mut Process {
        match &mut self.kind {
            Kind::Redis { nodes, .. } | Kind::Redlock(nodes) => nodes[server].process(),
            Kind::Etcd(cluster) => cluster.members[server].process(),
            Kind::ZooKeeper(ensemble) => ensemble.members[server].process(),
        }
    }

    /// Starts a killed server again, with its data, or without where it is a Redis.
    pub(super) fn restart(&mut self, server: usize, keeps_data: bool) -> Result<(), ServerError> {
        match &mut self.kind {
            Kind::Redis { nodes, .. } | Kind::Redlock(nodes) if keeps_data => nodes[server].restart(),
            Kind::Redis { nodes, .. } | Kind::Redlock(nodes) => nodes[server].restart_empty(),
            Kind::Etcd(cluster) => cluster.members[server].restart(),
            Kind::ZooKeeper(ensemble) => ensemble.members[server].restart(),
        }
    }

    /// Sets the wall clock of a server.
    pub(super) fn step_clock(&self, server: usize, by_ms: i64) -> Result<(), ChaosError> {
        Ok(self.clocks.get(server).map_or(Ok(()), |clock| clock.step(by_ms))?)
    }

    /// Makes a member the leader, if the cluster has one to tell.
    pub(super) fn move_leader(&self, to: usize) -> bool {
        match &self.kind {
            Kind::Etcd(cluster) => cluster.move_leader(to).is_ok(),
            _ => false,
        }
    }

    /// From now on the replica hears nothing more of the primary.
    pub(super) fn cut_replication(&self) {
        if let Kind::Redis { replication, .. } = &self.kind {
            replication.set(Direction::ToClient, Link::Cut);
        }
    }

    /// The primary is gone, and the replica takes its place with what it has. Returns the old primary and the new one.
    pub(super) fn fail_over(&mut self) -> Result<Option<(usize, usize)>, ServerError> {
        let Kind::Redis { nodes, primary, replication } = &mut self.kind else { return Ok(None) };
        let (old, new) = (*primary, 1 - *primary);
        nodes[old].process().kill();
        // What was under way is lost.
        replication.reset();
        nodes[new].promote()?;
        *primary = new;
        Ok(Some((old, new)))
    }

    /// The old primary comes back as the replica of the new one.
    pub(super) fn rejoin(&mut self) -> Result<(), ServerError> {
        let Kind::Redis { nodes, primary, replication } = &mut self.kind else { return Ok(()) };
        replication.set(Direction::ToClient, Link::Open);
        replication.redirect(&nodes[*primary].address());
        let replica = &mut nodes[1 - *primary];
        replica.restart_empty()?;
        replica.follow(replication.port())
    }
}

impl Server {
    /// The number of a server that is known.
    pub(super) const fn number(self) -> usize {
        match self {
            Self::Leader => 0,
            Self::Number(number) => number,
        }
    }
}
