//! `peers`: compares these locks with other libraries.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use files::Parents;
use real::lab::{Machine, keep, try_keep};
use real::peers::results::Configuration;
use real::peers::{compare, page};

use super::metrics::MetricsArgs;
use super::{Outcome, print, span, written};

/// The page that `--write` writes.
const PAGE: &str = "docs/peers.md";

/// The results of which the page is made.
const RESULTS: &str = "real/results/peers.json";

/// The results of any other comparison.
const OWN_RESULTS: &str = "target/peers.json";

/// The flags of `peers`.
#[derive(Args)]
pub(crate) struct Peers {
    /// The number of slices of each measurement for each peer; peers take turns.
    #[arg(long, env = "DLOCK_ROUNDS", default_value_t = 5)]
    rounds: u64,
    /// The number of acquires and releases in a slice without contention, and of the jobs of a queue.
    #[arg(long, env = "DLOCK_OPERATIONS", default_value_t = 3000)]
    operations: u64,
    /// The number of contenders for one key.
    #[arg(long, env = "DLOCK_CONTENDERS", value_delimiter = ',', default_value = "50,200")]
    contenders: Vec<u64>,
    /// The time for which they hold the lock.
    #[arg(long, env = "DLOCK_WORK", value_parser = span::parse, default_value = "50ms")]
    work: Duration,
    /// The duration of a slice with one key.
    #[arg(long, env = "DLOCK_HOT", value_parser = span::parse, default_value = "4s", value_name = "TIME")]
    hot: Duration,
    /// The number of tasks that acquire and release at the same time over the key space.
    #[arg(long, env = "DLOCK_TASKS", default_value_t = 200)]
    tasks: u64,
    /// The number of tasks that only acquire, compared with the 3200 commands in flight of redis-benchmark -P
    /// 64 on its 50 connections.
    #[arg(long, env = "DLOCK_TAKERS", default_value_t = 1000)]
    takers: u64,
    /// The duration of a slice over the key space.
    #[arg(long, env = "DLOCK_SPACE", value_parser = span::parse, default_value = "1s", value_name = "TIME")]
    space: Duration,
    /// The permits of a semaphore, for which the smallest number of contenders contends.
    #[arg(long, env = "DLOCK_PERMITS", default_value_t = 10)]
    permits: u64,
    /// Leaves a peer out: redis-py, node-redlock, rslock, kazoo, kazoo's Election, redis-semaphore, bullmq,
    /// pg-boss.
    /// If a peer is neither left out nor installed, the command exits with 1.
    #[arg(long, env = "DLOCK_WITHOUT", value_delimiter = ',', value_name = "NAME")]
    without: Vec<String>,
    /// Also writes docs/peers.md. The load average must be at most 1.
    #[arg(long)]
    write: bool,
    /// The file for the raw results. By default target/peers.json, or real/results/peers.json with --write.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsArgs,
}

impl Peers {
    pub(crate) fn run(self) -> Outcome {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let configuration = Configuration {
            rounds: self.rounds,
            operations: self.operations,
            contenders: self.contenders,
            work_ms: millis(self.work),
            hot_ms: millis(self.hot),
            tasks: self.tasks,
            takers: self.takers,
            space_ms: millis(self.space),
            permits: self.permits,
        };
        let Configuration { rounds, operations, tasks, takers, hot_ms, space_ms, .. } = configuration;
        let numbers = [rounds, operations, tasks, takers, hot_ms, space_ms];
        if numbers.iter().chain(&configuration.contenders).any(|number| *number == 0) {
            return Err(
                "rounds, operations, contenders, tasks, takers and times must each be above zero".into()
            );
        }
        if !(2..=1000).contains(&configuration.permits) {
            let permits = configuration.permits;
            return Err(format!("a semaphore of {permits} permits can't be: give 2 to 1000").into());
        }
        let out = self.out.unwrap_or_else(|| if self.write { RESULTS } else { OWN_RESULTS }.into());
        try_keep(&out, &[])?;
        if self.write {
            files::try_outputs(&[Path::new(PAGE)], &[&out], Parents::Exist)?;
            Machine::this().must_be_idle()?;
        }
        real::logs::install(None)?;
        self.metrics.serve_aside("peers")?;
        let command = super::experiment::command();
        let results = compare(command, configuration, &self.without, |progress| eprintln!("{progress}"))?;
        let printed = print(&results.tables());
        keep(&results, &out)?;
        printed?;
        if self.write {
            files::write(Path::new(PAGE), page(&results))?;
            written(Path::new(PAGE));
        }
        print(&format!("\nraw results: {}\n", out.display()))?;
        Ok(results.missing.is_empty())
    }
}
