//! `chaos`: a long run under faults.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use real::chaos::{self, Configuration, FaultKind, Plan};
use real::metrics::Targets;
use real::primitive::Primitive;
use real::record::Record;
use real::stop::Stop;
use real::systems::System;
use real::tokens::Tokens;

use resource::Fencing;

use super::metrics::MetricsArgs;
use super::{Outcome, fencing, print, span, written};

/// The flags of `chaos`.
#[derive(Args)]
pub(crate) struct Chaos {
    /// The lock systems, one run after the other; by default all. Jobs with --record postgres need none.
    #[arg(long, visible_alias = "backend", env = "DLOCK_SYSTEM", value_enum, value_delimiter = ',')]
    system: Vec<System>,
    /// The duration of each run's faults.
    #[arg(
        long = "for",
        env = "DLOCK_FOR",
        value_parser = span::parse_run,
        default_value = "10m",
        value_name = "TIME"
    )]
    lasts: Duration,
    /// The mean time between faults.
    #[arg(long, env = "DLOCK_EVERY", value_parser = span::parse, default_value = "3s", value_name = "TIME")]
    every: Duration,
    /// The seed from which the plan of faults is drawn.
    #[arg(long, env = "DLOCK_SEED", default_value_t = 1)]
    seed: u64,
    /// Makes the resource refuse stale tokens (on), or not (off).
    #[arg(long, env = "DLOCK_FENCE", value_parser = fencing::parser(), default_value = "on")]
    fence: Fencing,
    /// The kinds of faults; by default all that the system can have.
    #[arg(long, env = "DLOCK_FAULTS", value_enum, value_delimiter = ',', value_name = "KIND")]
    faults: Vec<FaultKind>,
    /// The number of workers, each a process.
    #[arg(long, env = "DLOCK_WORKERS", default_value_t = 4)]
    workers: usize,
    /// The number of locks they contend for.
    #[arg(long, env = "DLOCK_KEYS", default_value_t = 1)]
    keys: u64,
    /// The primitive: mutex, bounded:M (a mutex for which at most M wait), semaphore:N, readers (of three
    /// rounds two read), several:K (keys at once), reentrant:D (nested sections), election, single-flight,
    /// cron:TIME (a tick every so often) or jobs (a queue, on Redis or PostgreSQL, to which a round adds a
    /// job).
    #[arg(long, env = "DLOCK_PRIMITIVE", default_value_t, value_name = "KIND")]
    primitive: Primitive,
    /// The record of ticks and jobs: the resource, or tables on PostgreSQL, which are the queue of jobs, too.
    #[arg(long, env = "DLOCK_RECORD", value_enum, default_value_t)]
    record: Record,
    /// The source of the fencing tokens, on redis and redlock; by default the counter.
    #[arg(long, env = "DLOCK_TOKENS", value_enum, value_name = "SOURCE")]
    tokens: Option<Tokens>,
    /// The TTL of a lease.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "1s")]
    ttl: Duration,
    /// The duration of the work before a write.
    #[arg(long, env = "DLOCK_WORK", value_parser = span::parse, default_value = "50ms")]
    work: Duration,
    /// Has an operator raise the counters of each Redis that has lost its data (lose-data), by `real raise`.
    /// The run then waits until every worker has written again.
    #[arg(long, env = "DLOCK_RAISE")]
    raise: bool,
    /// Prints the plan and runs nothing.
    #[arg(long)]
    plan: bool,
    /// The folder for histories, plans and reports: one folder for each system, each --primitive, each
    /// --tokens, each --fence and each --seed.
    #[arg(long, value_name = "FOLDER", default_value = "target/chaos")]
    out: PathBuf,
    #[command(flatten)]
    metrics: MetricsArgs,
}

impl Chaos {
    pub(crate) fn run(self) -> Outcome {
        // Each run lasts for minutes: a flag that does not suit the last one is refused before the first.
        let configurations = self
            .systems()?
            .into_iter()
            .map(|system| self.configuration(system))
            .collect::<Result<Vec<_>, _>>()?;
        let mut as_expected = true;
        let stop = super::stop_on_signals()?;
        real::logs::install(None)?;
        let targets = self.metrics.serve_aside("chaos")?;
        for configuration in configurations.iter().take_while(|_| !stop.is_asked()) {
            if self.plan {
                print(&Plan::draw(configuration).to_string())?;
                continue;
            }
            as_expected &= self.run_one(configuration, &stop, targets.as_ref())?;
        }
        Ok(as_expected)
    }

    /// Returns the lock system of each run; `None` if it needs no lock.
    fn systems(&self) -> Result<Vec<Option<System>>, String> {
        match (self.record.needs_lock(self.primitive), self.system.as_slice()) {
            (true, []) => Ok(System::value_variants().iter().copied().map(Some).collect()),
            (true, systems) => Ok(systems.iter().copied().map(Some).collect()),
            (false, []) => Ok(vec![None]),
            (false, [system, ..]) => Err(format!(
                "--system {}: the queue of jobs is on PostgreSQL and needs no lock: leave it out, or give \
                 --record resource",
                system.as_str()
            )),
        }
    }

    fn run_one(&self, configuration: &Configuration, stop: &Stop, targets: Option<&Targets>) -> Outcome {
        let Configuration { fence, primitive, .. } = configuration;
        let fence = fence.as_str();
        let primitive = if *primitive == Primitive::Mutex { String::new() } else { format!(", {primitive}") };
        let title = format!("{}{primitive}{}", configuration.system_name(), configuration.notes());
        let folder = title.replace(", ", "-").replace([':', ' '], "-");
        let out = self.out.join(format!("{folder}-{fence}-{}", self.seed));
        print(&format!("{title}, fencing {fence}, seed {}\n", self.seed))?;
        let report = chaos::run(configuration, &out, stop, targets, |fault| {
            // Ignore a closed stdout.
            let _ = print(&format!("  {fault}\n"));
        })?;
        print(&format!("{report}  real audit {}\n", out.join("history.jsonl").display()))?;
        ["plan.json", "history.jsonl", "report.json"].iter().for_each(|file| written(&out.join(file)));
        Ok(report.is_as_expected())
    }

    fn configuration(&self, system: Option<System>) -> Result<Configuration, Box<dyn Error>> {
        let all = FaultKind::value_variants();
        let faults = if self.faults.is_empty() { all } else { &self.faults };
        let configuration = Configuration {
            system,
            fence: self.fence,
            seed: self.seed,
            lasts: self.lasts,
            every: self.every,
            faults: faults.to_vec(),
            workers: self.workers,
            keys: self.keys,
            primitive: self.primitive,
            record: self.record,
            tokens: self.tokens.unwrap_or_default(),
            ttl: self.ttl,
            work: self.work,
            raise: self.raise,
        };
        self.record.check(self.primitive, Some(self.fence))?;
        self.check_servers(system)?;
        let wanted = self.primitive.keys();
        if u64::from(wanted) > self.keys {
            let problem = format!("--primitive {} locks {wanted} keys: set --keys to more", self.primitive);
            return Err(problem.into());
        }
        if self.raise && self.primitive == Primitive::Jobs {
            return Err("--raise: the jobs have a resource each, so no counter is raised for them".into());
        }
        if self.raise && self.record == Record::Postgres {
            let problem = "--raise: `real raise` asks the resource for its highest token: leave it out, or \
                 give --record resource";
            return Err(problem.into());
        }
        if configuration.kinds().next().is_none() {
            return Err(format!(
                "none of these faults can strike {}: give others to --faults",
                configuration.system_name()
            )
            .into());
        }
        Ok(configuration)
    }

    /// Refuses a primitive or a source of tokens that the lock servers do not have.
    fn check_servers(&self, system: Option<System>) -> Result<(), String> {
        let Some(system) = system else {
            let tokens = self.tokens.filter(|tokens| !tokens.is_default());
            return tokens.map_or(Ok(()), |tokens| tokens.check(System::Redis, self.primitive));
        };
        self.primitive.check(system)?;
        self.tokens.map_or(Ok(()), |tokens| tokens.check(system, self.primitive))
    }
}
