//! `gen`: locks by the million.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use real::TokioRuntime;
use real::backends::BackendKind;
use real::experiments::keep;
use real::fill::{Counters, Fill, fill};
use tokio::runtime::{Builder, Handle};

use super::state::State;
use super::{Outcome, print, span};

/// The flags of `gen`.
#[derive(Args)]
pub(crate) struct Gen {
    /// The Redis to fill, `host:port`; by default the one that `real up` has started.
    #[arg(long, env = "DLOCK_SERVER")]
    server: Option<String>,
    /// Where `real up` has noted what it started.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
    /// How many locks.
    #[arg(long, env = "DLOCK_KEYS", default_value_t = 10_000_000)]
    keys: u64,
    /// What they are called: NAME:0, NAME:1 and so on.
    #[arg(long, env = "DLOCK_KEY", default_value = "account", value_name = "NAME")]
    key: String,
    /// What owner tokens and TTLs are drawn from.
    #[arg(long, env = "DLOCK_SEED", default_value_t = 1)]
    seed: u64,
    /// The shortest TTL.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "10m")]
    ttl: Duration,
    /// How much longer the longest TTL is; between, all are as likely.
    #[arg(long, env = "DLOCK_SPREAD", value_parser = span::parse, default_value = "0")]
    spread: Duration,
    /// Where grants are counted: `none`, `key` (each key has a counter, as in the lock), or the number of shared ones.
    #[arg(long, env = "DLOCK_COUNTERS", value_parser = counters, default_value = "key")]
    counters: Counters,
    /// Writes the report to this file too, as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Gen {
    pub(crate) fn run(self) -> Outcome {
        let server = match self.server {
            Some(server) => server,
            None => {
                let state = State::load(self.state.as_deref())?;
                let server =
                    state.and_then(|state| state.servers.get(BackendKind::Redis.as_str())?.first().cloned());
                server.ok_or("no Redis to fill: run `real up redis` first, or give --server")?
            }
        };
        let Self { keys, key, seed, ttl, spread, counters, .. } = self;
        let order = Fill { server, keys, key, seed, ttl, spread, counters };
        let bar = ProgressBar::new(keys).with_style(ProgressStyle::with_template(
            "{wide_bar} {human_pos}/{human_len} locks, {per_sec}, {eta} to go",
        )?);
        let executor = Builder::new_current_thread().enable_all().build()?;
        let filled = executor.block_on(async {
            fill(&TokioRuntime::new(Handle::current()), order, |locks| bar.inc(locks)).await
        })?;
        bar.finish_and_clear();
        print(&format!(
            "{keys} locks in {:.1?} ({:.0}/s): {} keys more, {} bytes more, {:.1} bytes a lock\n",
            filled.took,
            filled.per_second(),
            filled.keys_added,
            filled.bytes_added,
            filled.bytes_per_lock(),
        ))?;
        if let Some(out) = &self.out {
            keep(&filled, out)?;
        }
        Ok(true)
    }
}

fn counters(text: &str) -> Result<Counters, String> {
    match text {
        "none" => Ok(Counters::None),
        "key" => Ok(Counters::Key),
        number => number
            .parse()
            .map(Counters::Shards)
            .map_err(|_| "give none, key, or a number of counters".to_owned()),
    }
}
