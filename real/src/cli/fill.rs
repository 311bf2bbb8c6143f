//! `gen`: fills a server with millions of locks.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dlock::TokioRuntime;
use real::fill::etcd::{EtcdFill, Leases, fill_etcd};
use real::fill::{Counters, Fill, Way, fill};
use real::lab::{keep, try_keep};
use real::systems::System;
use tokio::runtime::{Builder, Handle, Runtime};

use super::metrics::MetricsArgs;
use super::progress::Progress;
use super::state::State;
use super::{Outcome, print, span, written};

/// The kind of server to fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Filled {
    /// One Redis: ten million locks take some 3 GB.
    Redis,
    /// One etcd: a lock with its lease takes some 3 KB of memory, and the database is limited to 2 GB.
    Etcd,
}

/// The sharing of leases between locks on etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LeasesArg {
    /// One lease for each lock.
    Each,
    /// One lease for all locks, as a client has.
    Shared,
}

/// Who makes the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WayArg {
    /// The commands of an acquire, with the owner tokens of the seed.
    Commands,
    /// The lock of `dlock`, by its script.
    Lock,
}

/// The flags of `gen`.
#[derive(Args)]
pub(crate) struct Gen {
    /// The kind of server.
    #[arg(long, visible_alias = "backend", env = "DLOCK_SYSTEM", value_enum, default_value = "redis")]
    system: Filled,
    /// The server's address, host:port; by default the server that `real up` has started.
    #[arg(long, env = "DLOCK_SERVER", value_delimiter = ',', hide_env_values = true)]
    server: Vec<String>,
    /// The state file of `real up`.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
    /// The number of locks.
    #[arg(long, env = "DLOCK_KEYS", default_value_t = 10_000_000)]
    keys: u64,
    /// The prefix of the keys: NAME:0, NAME:1 and so on.
    #[arg(long, env = "DLOCK_KEY", default_value = "account", value_name = "NAME")]
    key: String,
    /// The seed from which owner tokens and TTLs are drawn.
    #[arg(long, env = "DLOCK_SEED", default_value_t = 1)]
    seed: u64,
    /// The shortest TTL.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "10m")]
    ttl: Duration,
    /// The difference between the longest and the shortest TTL, on Redis; TTLs are drawn evenly between.
    #[arg(long, env = "DLOCK_SPREAD", value_parser = span::parse, default_value = "0")]
    spread: Duration,
    /// The fencing counters, on Redis: `none`, `key` (a counter for each key, as the lock has), a number of
    /// shared counters, or `slots` (a counter for each hash slot, as the lock shares them).
    #[arg(long, env = "DLOCK_COUNTERS", value_parser = counters, default_value = "key")]
    counters: Counters,
    /// Who makes the locks, on Redis: the commands of an acquire, in pipelines, or the lock itself.
    #[arg(long, env = "DLOCK_WAY", value_enum, default_value = "commands")]
    way: WayArg,
    /// The sharing of leases between locks, on etcd.
    #[arg(long, env = "DLOCK_LEASES", value_enum, default_value = "each")]
    leases: LeasesArg,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Also writes the report to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Gen {
    pub(crate) fn run(self) -> Outcome {
        if let Some(out) = &self.out {
            try_keep(out, &[])?;
        }
        let executor = Builder::new_current_thread().enable_all().build()?;
        real::logs::install(None)?;
        self.metrics.serve("gen", &executor)?;
        let progress = Progress::new(self.keys);
        match self.system {
            Filled::Redis => self.fill_redis(&executor, &progress),
            Filled::Etcd => self.fill_etcd(&executor, &progress),
        }
    }

    fn fill_redis(self, executor: &Runtime, progress: &Progress) -> Outcome {
        let servers = self.servers(System::Redis)?;
        let [server] = servers.as_slice() else {
            return Err("give exactly one --server: only one Redis is filled at a time".into());
        };
        let way = match self.way {
            WayArg::Commands => Way::Commands,
            WayArg::Lock => Way::Lock,
        };
        let Self { keys, key, seed, ttl, spread, counters, .. } = self;
        let order = Fill { server: server.clone(), keys, key, seed, ttl, spread, counters, way };
        let filled = executor.block_on(async {
            fill(&TokioRuntime::new(Handle::current()), order, |locks| progress.inc(locks)).await
        })?;
        progress.finish();
        let printed = print(&format!(
            "{keys} locks in {:.1?} ({:.0}/s): {} keys and {} bytes added, {:.1} bytes a lock\n",
            filled.took,
            filled.per_second(),
            filled.keys_added,
            filled.bytes_added,
            filled.bytes_per_lock(),
        ));
        if let Some(out) = &self.out {
            keep(&filled, out)?;
            written(out);
        }
        printed?;
        Ok(true)
    }

    fn fill_etcd(self, executor: &Runtime, progress: &Progress) -> Outcome {
        let servers = self.servers(System::Etcd)?;
        let leases = match self.leases {
            LeasesArg::Each => Leases::Each,
            LeasesArg::Shared => Leases::Shared,
        };
        let Self { keys, key, seed, ttl, .. } = self;
        let order = EtcdFill { servers, keys, key, seed, ttl, leases };
        let filled = executor.block_on(async {
            let on_locks = |locks| {
                progress.inc(locks);
                ControlFlow::Continue(())
            };
            fill_etcd(&TokioRuntime::new(Handle::current()), order, on_locks).await
        })?;
        progress.finish();
        let printed = print(&format!(
            "{} locks in {:.1?} ({:.0}/s): the database grew by {} bytes, {:.1} bytes a lock\n",
            filled.locks,
            filled.took,
            filled.per_second(),
            filled.database_bytes_added,
            filled.bytes_per_lock(),
        ));
        if let Some(out) = &self.out {
            keep(&filled, out)?;
            written(out);
        }
        printed?;
        match &filled.failed {
            None => Ok(true),
            Some(error) => Err(format!(
                "the etcd failed after {} of {keys} locks: {error}; it refuses writes when its database has \
                 reached its quota of 2 GB",
                filled.locks
            )
            .into()),
        }
    }

    fn servers(&self, system: System) -> Result<Vec<String>, Box<dyn Error>> {
        if self.server.iter().any(|server| server.contains('@')) {
            return Err("--server is host:port: leave out the scheme, the user and the password".into());
        }
        if !self.server.is_empty() {
            return Ok(self.server.clone());
        }
        let system = system.as_str();
        let state = State::load(self.state.as_deref())?;
        let servers = state.and_then(|state| state.servers.get(system).cloned());
        servers.ok_or_else(|| {
            format!("no {system} is running: run `real up {system}` first, or give --server").into()
        })
    }
}

fn counters(text: &str) -> Result<Counters, String> {
    match text {
        "none" => Ok(Counters::None),
        "key" => Ok(Counters::Key),
        "slots" => Ok(Counters::Slots),
        number => number
            .parse()
            .map(Counters::Shards)
            .map_err(|_| "expected none, key, slots, or a number of counters".to_owned()),
    }
}
