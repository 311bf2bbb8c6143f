//! `experiment N`: runs an experiment of the lab.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use history::Span;
use real::experiments::{Settings, find};
use real::lab::{Machine, keep_histories, keep_text, try_keep};
use real::systems::System;
use toml::Value;

use super::metrics::MetricsArgs;
use super::{Outcome, print, span, written};

/// The flags of `experiment`. Each replaces a field of the configuration; a field that the experiment does
/// not have is an error.
#[derive(Args)]
pub(crate) struct Experiment {
    /// The number of the experiment; docs/experiments.md lists them.
    number: u32,
    /// A configuration file to use instead of the committed real/experiments/N.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The lock systems.
    #[arg(long, visible_alias = "backend", env = "DLOCK_SYSTEM", value_enum, value_delimiter = ',')]
    system: Vec<System>,
    /// The TTL of a lease.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse)]
    ttl: Option<Duration>,
    /// The duration of the holder's pause.
    #[arg(long, env = "DLOCK_PAUSE", value_parser = span::parse)]
    pause: Option<Duration>,
    /// The duration of the work before a write.
    #[arg(long, env = "DLOCK_WORK", value_parser = span::parse)]
    work: Option<Duration>,
    /// Sets any other field of the configuration, in TOML: --set rounds=3, --set 'ttls=["1s", "2s"]'.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// The file for the raw results. By default real/results/experiment-N.json, of which docs/experiments.md
    /// is made and for which the load average must be at most 1, or target/experiments/experiment-N.json if a
    /// flag changes the committed configuration.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keeps the history of each run in this folder, for `real audit`.
    #[arg(long, env = "DLOCK_HISTORIES", value_name = "FOLDER")]
    histories: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsArgs,
}

impl Experiment {
    pub(crate) fn run(self) -> Outcome {
        let experiment = find(self.number)?;
        let (given, histories) = (self.out.clone(), self.histories.clone());
        real::logs::install(None)?;
        self.metrics.serve_aside("experiment")?;
        let settings = self.settings()?;
        let is_for_a_page = given.is_none() && is_committed(&settings);
        let out = given.unwrap_or_else(|| results(experiment.number(), &settings));
        try_keep(&out, &settings.file.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        if let Some(folder) = &histories {
            keep_histories(folder)?;
        }
        if is_for_a_page {
            Machine::this().must_be_idle()?;
        }
        let run = experiment.run(&settings, command())?;
        // If it can't be printed, the results are kept all the same.
        let printed = print(&run.chapter.text());
        keep_text(&run.record, &out)?;
        printed?;
        if let Some(folder) = &histories {
            written(folder);
        }
        print(&format!("raw results: {}\n", out.display()))?;
        Ok(run.chapter.section.as_expected())
    }

    fn settings(self) -> Result<Settings, Box<dyn Error>> {
        let mut changes = Vec::new();
        if !self.system.is_empty() {
            let names = self.system.iter().filter_map(ValueEnum::to_possible_value);
            let names = names.map(|name| Value::from(name.get_name())).collect();
            changes.push(("systems".to_owned(), Value::Array(names)));
        }
        for (name, time) in [("ttl", self.ttl), ("pause", self.pause), ("work", self.work)] {
            changes.extend(time.map(|time| (name.to_owned(), Value::from(Span(time).to_string()))));
        }
        for change in &self.set {
            let table: toml::Table = change
                .parse()
                .map_err(|error| format!("--set {change}: {error}; give FIELD=VALUE, such as rounds=3"))?;
            changes.extend(table);
        }
        Ok(Settings { file: self.config, changes })
    }
}

/// Returns the file for the results of an experiment. The repository's own results are those of the committed
/// configuration.
fn results(number: u32, settings: &Settings) -> PathBuf {
    let folder = if is_committed(settings) { "real/results" } else { "target/experiments" };
    format!("{folder}/experiment-{number}.json").into()
}

fn is_committed(settings: &Settings) -> bool {
    settings.file.is_none() && settings.changes.is_empty()
}

/// Returns the command line that repeats this command.
pub(super) fn command() -> String {
    let arguments = std::env::args().skip(1).map(|argument| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
        if argument.chars().all(plain) { argument } else { format!("'{}'", argument.replace('\'', r"'\''")) }
    });
    let profile = if cfg!(debug_assertions) { "" } else { "--release " };
    format!("cargo run {profile}-p fencepost-real -- {}", arguments.collect::<Vec<_>>().join(" "))
}
