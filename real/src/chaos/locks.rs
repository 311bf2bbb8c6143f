//! The lock servers of a long run, of any system.

use super::ChaosError;
use super::Configuration;
use super::fault::{FaultKind, Server};
use crate::faults::{Direction, Link, Proxy, WallClock};
use crate::servers::{EtcdCluster, Persistence, Process, Redis, ServerError, Stage, ZooKeeperEnsemble};
use crate::systems::System;

/// The data that a Redis keeps when it is killed: all, so that data is lost only by a fault that says so.
pub(super) const PERSISTENCE: Persistence = Persistence::Always;

/// The lock servers.
pub(super) struct Locks {
    kind: Kind,
    names: Vec<String>,
    /// One clock for each Redis, if the plan steps clocks.
    clocks: Vec<WallClock>,
}

enum Kind {
    /// A primary and its replica, which change places at a failover.
    Redis {
        nodes: Vec<Redis>,
        primary: usize,
        replication: Proxy,
    },
    /// Servers that know nothing of each other; none if the workers need no lock.
    Redlock(Vec<Redis>),
    Etcd(EtcdCluster),
    ZooKeeper(ZooKeeperEnsemble),
}

impl Locks {
    /// Starts the servers and waits until they are ready.
    pub(super) fn start(stage: &Stage, configuration: &Configuration) -> Result<Self, ChaosError> {
        let count = configuration.servers();
        let name = configuration.system_name();
        let names: Vec<_> = (1..=count).map(|n| format!("{name}-{n}")).collect();
        let clocks = if configuration.kinds().any(|kind| kind == FaultKind::StepClock) {
            names.iter().map(|name| WallClock::new(stage, name)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let redis = || {
            let start = |(n, name): (usize, &String)| match clocks.get(n) {
                Some(clock) => Redis::start_with(stage, name, PERSISTENCE, &clock.environment()),
                None => Redis::start(stage, name, PERSISTENCE),
            };
            names.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()
        };
        let kind = match configuration.system {
            Some(System::Redis) => {
                let mut nodes = redis()?;
                let replication = tokio::runtime::Handle::current()
                    .block_on(Proxy::start(&nodes[0].address()))
                    .map_err(ChaosError::Proxy)?;
                nodes[1].follow(replication.port())?;
                Kind::Redis { nodes, primary: 0, replication }
            }
            Some(System::Redlock) | None => Kind::Redlock(redis()?),
            Some(System::Etcd) => Kind::Etcd(EtcdCluster::start(stage)?),
            Some(System::Zookeeper) => Kind::ZooKeeper(ZooKeeperEnsemble::start(stage)?),
        };
        Ok(Self { kind, names, clocks })
    }

    /// Returns the server's name in the history.
    pub(super) fn name(&self, server: usize) -> &str {
        self.names.get(server).map_or("?", String::as_str)
    }

    /// Returns the addresses for the workers, in order; for Redis the primary's alone.
    pub(super) fn places(&self) -> Vec<String> {
        match &self.kind {
            Kind::Redis { nodes, primary, .. } => vec![nodes[*primary].address()],
            Kind::Redlock(nodes) => nodes.iter().map(Redis::address).collect(),
            Kind::Etcd(cluster) => cluster.addresses(),
            Kind::ZooKeeper(ensemble) => ensemble.addresses(),
        }
    }

    /// Returns the server's position among the workers' addresses.
    pub(super) fn place(&self, server: usize) -> usize {
        if let Kind::Redis { .. } = self.kind { 0 } else { server }
    }

    /// Returns the name of the server at this position among the workers' addresses.
    pub(super) fn name_at(&self, place: usize) -> &str {
        match &self.kind {
            Kind::Redis { primary, .. } => self.name(*primary),
            _ => self.name(place),
        }
    }

    /// Returns the leader; the first server if there is none, or if all are equal.
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

    /// Restarts a killed server, with its data, or (Redis only) without.
    pub(super) fn restart(&mut self, server: usize, keeps_data: bool) -> Result<(), ServerError> {
        match &mut self.kind {
            Kind::Redis { nodes, .. } | Kind::Redlock(nodes) if keeps_data => nodes[server].restart(),
            Kind::Redis { nodes, .. } | Kind::Redlock(nodes) => nodes[server].restart_empty(),
            Kind::Etcd(cluster) => cluster.members[server].restart(),
            Kind::ZooKeeper(ensemble) => ensemble.members[server].restart(),
        }
    }

    /// Steps the wall clock of a server.
    pub(super) fn step_clock(&self, server: usize, by_ms: i64) -> Result<(), ChaosError> {
        Ok(self.clocks.get(server).map_or(Ok(()), |clock| clock.step(by_ms))?)
    }

    /// Makes a member the leader; returns false if the cluster has no leader to replace.
    pub(super) fn move_leader(&self, to: usize) -> bool {
        match &self.kind {
            Kind::Etcd(cluster) => cluster.move_leader(to).is_ok(),
            _ => false,
        }
    }

    /// Stops the replication: from now on the replica receives nothing from the primary.
    pub(super) fn cut_replication(&self) {
        if let Kind::Redis { replication, .. } = &self.kind {
            replication.set(Direction::ToClient, Link::Cut);
        }
    }

    /// Promotes the replica with the data that it has. Returns the old primary and the new one.
    pub(super) fn fail_over(&mut self) -> Result<Option<(usize, usize)>, ServerError> {
        let Kind::Redis { nodes, primary, replication } = &mut self.kind else { return Ok(None) };
        let (old, new) = (*primary, 1 - *primary);
        nodes[old].process().kill();
        // Replication data in transit is lost.
        replication.reset();
        nodes[new].promote()?;
        *primary = new;
        Ok(Some((old, new)))
    }

    /// Restarts the old primary as the replica of the new one.
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
    /// Returns the number of a server, once the leader is resolved.
    pub(super) const fn number(self) -> usize {
        match self {
            Self::Leader => 0,
            Self::Number(number) => number,
        }
    }
}
