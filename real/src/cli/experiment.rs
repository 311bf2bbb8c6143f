//! `experiment N`: the lab's experiments.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use real::backends::BackendKind;
use real::experiments::keep;
use real::experiments::pause_outlives_ttl::{self, Configuration};

use super::{Outcome, print, span};

/// The flags of `experiment`.
#[derive(Args)]
pub(crate) struct Experiment {
    /// Which: 1, pause longer than the TTL.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1))]
    number: u32,
    /// On which lock servers; by default on all kinds.
    #[arg(long, env = "DLOCK_BACKEND", value_enum, value_delimiter = ',')]
    backend: Vec<BackendKind>,
    /// How long a lease lives.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "2s")]
    ttl: Duration,
    /// How long the holder pauses.
    #[arg(long, env = "DLOCK_PAUSE", value_parser = span::parse, default_value = "5s")]
    pause: Duration,
    /// How long a worker works before it writes.
    #[arg(long, env = "DLOCK_WORK", value_parser = span::parse, default_value = "50ms")]
    work: Duration,
    /// Where the raw results go.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Experiment {
    pub(crate) fn run(self) -> Outcome {
        let all = BackendKind::value_variants();
        let backends = if self.backend.is_empty() { all } else { &self.backend };
        let out = self.out.unwrap_or_else(|| format!("real/results/experiment-{}.json", self.number).into());
        if self.pause <= self.ttl + self.work {
            return Err("the pause must be longer than the TTL: that is the experiment".into());
        }
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let configuration = Configuration {
            ttl_ms: millis(self.ttl),
            pause_ms: millis(self.pause),
            work_ms: millis(self.work),
        };
        let results = pause_outlives_ttl::run(backends, configuration, command())?;
        keep(&results, &out)?;
        print(&results.text())?;
        print(&format!("\nraw results: {}\n", out.display()))?;
        Ok(results.as_expected())
    }
}

/// The command that was given, as one would repeat it.
pub(super) fn command() -> String {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let profile = if cfg!(debug_assertions) { "" } else { "--release " };
    format!("cargo run {profile}-p real -- {}", arguments.join(" "))
}
