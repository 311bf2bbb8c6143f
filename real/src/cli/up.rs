//! `up` and `down`: start and stop servers for use from a shell.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use real::servers::{
    EtcdCluster, Persistence, Postgres, Process, Redis, RedisCluster, ServerError, Stage, ZooKeeper,
    end_left_stage,
};

use super::state::State;
use super::{Outcome, print, written};

/// The flags of `up`.
#[derive(Args)]
pub(crate) struct Up {
    /// The servers to start.
    #[arg(value_enum, default_values = ["redis", "redlock", "etcd", "zookeeper", "postgres"])]
    what: Vec<What>,
    /// The state file to write, for the other commands.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
}

/// The flags of `down`.
#[derive(Args)]
pub(crate) struct Down {
    /// The state file of `up`.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum What {
    /// One Redis.
    Redis,
    /// Five independent Redis, for Redlock.
    Redlock,
    /// A Redis Cluster of three.
    Cluster,
    /// A Redis and its replica, in this order.
    Replica,
    /// Three etcd.
    Etcd,
    /// One ZooKeeper.
    Zookeeper,
    /// PostgreSQL, for the resource.
    Postgres,
}

impl What {
    fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Up {
    pub(crate) fn run(mut self) -> Outcome {
        if let Some(state) = State::load(self.state.as_deref())?
            && state.directory.exists()
        {
            return Err("servers are already running: run `real down` first, or give another --state".into());
        }
        State::try_save(self.state.as_deref())?;
        let stage = Stage::new()?;
        let mut state = State {
            directory: stage.directory().to_owned(),
            servers: BTreeMap::new(),
            pids: BTreeMap::new(),
        };
        self.what.sort();
        self.what.dedup();
        let mut running = Vec::new();
        for what in self.what {
            let mut servers = start(&stage, what)?;
            let addresses: Vec<_> = servers.iter().map(Running::address).collect();
            for server in &mut servers {
                state.pids.insert(server.process().name().to_owned(), server.process().pid());
            }
            print(&format!("{:9}  {}\n", what.as_str(), addresses.join(",")))?;
            state.servers.insert(what.as_str().to_owned(), addresses);
            running.extend(servers);
        }
        // Until this point a failure, or Ctrl-C, stops all servers.
        written(&state.save(self.state.as_deref())?);
        running.iter_mut().for_each(|server| server.process().leave());
        stage.leave();
        print("`real down` stops them.\n")?;
        Ok(true)
    }
}

impl Down {
    pub(crate) fn run(self) -> Outcome {
        let Some(state) = State::load(self.state.as_deref())? else {
            return Err("no servers are running: start them with `real up`".into());
        };
        // After a reboot the folder may be gone, and the servers are too.
        if state.directory.exists() {
            end_left_stage(&state.directory)?;
        }
        State::remove(self.state.as_deref())?;
        Ok(true)
    }
}

enum Running {
    Redis(Redis),
    Etcd(real::servers::Etcd),
    ZooKeeper(ZooKeeper),
    Postgres(Postgres),
}

impl Running {
    fn address(&self) -> String {
        match self {
            Self::Redis(server) => server.address(),
            Self::Etcd(server) => server.address(),
            Self::ZooKeeper(server) => server.address(),
            Self::Postgres(server) => server.url(),
        }
    }

    fn process(&mut self) -> &mut Process {
        match self {
            Self::Redis(server) => server.process(),
            Self::Etcd(server) => server.process(),
            Self::ZooKeeper(server) => server.process(),
            Self::Postgres(server) => server.process(),
        }
    }
}

fn start(stage: &Stage, what: What) -> Result<Vec<Running>, ServerError> {
    let all = |servers: Vec<Redis>| servers.into_iter().map(Running::Redis).collect();
    Ok(match what {
        What::Redis => all(vec![Redis::start(stage, "redis", Persistence::None)?]),
        What::Redlock => all(Redis::start_many(stage, 5)?),
        What::Cluster => all(RedisCluster::start(stage)?.members),
        What::Replica => {
            let primary = Redis::start(stage, "primary", Persistence::None)?;
            let replica = Redis::start_replica(stage, "replica", &primary)?;
            all(vec![primary, replica])
        }
        What::Etcd => EtcdCluster::start(stage)?.members.into_iter().map(Running::Etcd).collect(),
        What::Zookeeper => vec![Running::ZooKeeper(ZooKeeper::start(stage)?)],
        What::Postgres => vec![Running::Postgres(Postgres::start(stage)?)],
    })
}
