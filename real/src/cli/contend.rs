//! `contend`: offers a fixed rate of attempts to a lock.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dlock::TokioRuntime;
use real::contend::{Arm, Arrivals, Load, contend_until};
use real::lab::{keep, try_keep};
use real::place::Place;
use real::primitive::Primitive;
use real::systems::System;
use resource::Fencing;
use tokio::runtime::{Builder, Handle};

use super::fencing;
use super::lock::LockArgs;
use super::metrics::MetricsArgs;
use super::{Identity, Outcome, print, span, written};

/// The flags of `contend`.
#[derive(Args)]
pub(crate) struct Contend {
    #[command(flatten)]
    lock: LockArgs,
    /// The mechanism that decides which contender may work.
    #[arg(long, env = "DLOCK_ARM", value_enum, default_value = "lock")]
    arm: ArmKind,
    /// The primitive: mutex, bounded:M (a mutex for which at most M wait), semaphore:N, readers (of three
    /// rounds two read), several:K (keys at once), reentrant:D (nested sections), election (campaigns; a
    /// leader resigns after its work), single-flight (each attempt wants a new result, its own or another's),
    /// cron:TIME (each fires, and runs the ticks that are due) or jobs (each adds a job to a queue on Redis,
    /// and claims one).
    #[arg(long, env = "DLOCK_PRIMITIVE", default_value_t, value_name = "KIND")]
    primitive: Primitive,
    /// The database for the mechanisms without a lock: postgresql://user@host:port/database.
    #[arg(
        long,
        env = "DLOCK_POSTGRES",
        value_name = "URL",
        hide_env_values = true,
        required_if_eq_any([("arm", "version"), ("arm", "jobs")])
    )]
    postgres: Option<String>,
    /// The number of contenders, and so the largest number of attempts that wait or hold at a time.
    #[arg(
        long,
        env = "DLOCK_CONTENDERS",
        value_parser = clap::value_parser!(u64).range(1..=100_000),
        default_value_t = 50
    )]
    contenders: u64,
    /// The number of keys; 1 is a single hot key.
    #[arg(long, env = "DLOCK_KEYS", default_value_t = 1)]
    keys: u64,
    /// The prefix of the keys: NAME:0, NAME:1 and so on.
    #[arg(long, env = "DLOCK_KEY", default_value = "contend", value_name = "NAME")]
    key: String,
    /// Attempts a second, offered whether the earlier ones were served or not.
    #[arg(long, env = "DLOCK_RATE", default_value_t = 100.0)]
    rate: f64,
    /// How attempts arrive: at even intervals, or as from many independent callers.
    #[arg(long, env = "DLOCK_ARRIVALS", value_enum, default_value = "even")]
    arrivals: ArrivalKind,
    /// The seed of random arrivals.
    #[arg(long, env = "DLOCK_SEED", default_value_t = 0)]
    seed: u64,
    /// An attempt gives up when it has waited so long since it was due; without it, it waits until the end.
    #[arg(long, env = "DLOCK_PATIENCE", value_parser = span::parse, value_name = "TIME")]
    patience: Option<Duration>,
    /// The time for which a lease is held.
    #[arg(long, env = "DLOCK_WORK", value_parser = span::parse, default_value = "50ms")]
    work: Duration,
    /// Each holder stands still for this time after its work, as in a pause of its process: its lease is not
    /// renewed, and ends if the pause outlasts it.
    #[arg(long, env = "DLOCK_PAUSE", value_parser = span::parse, default_value = "0")]
    pause: Duration,
    /// With one Redis: waiters only poll, and are not woken by a release.
    #[arg(long, env = "DLOCK_POLLED")]
    polled: bool,
    /// The demand of the acquires: a fencing token, or none.
    #[arg(long, env = "DLOCK_FENCE", value_parser = fencing::demand(), default_value = "on")]
    fence: Fencing,
    /// The duration of the load.
    #[arg(
        long = "for",
        env = "DLOCK_FOR",
        value_parser = span::parse_run,
        default_value = "10s",
        value_name = "TIME"
    )]
    lasts: Duration,
    /// Also writes the report to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    identity: Identity,
}

/// The mechanism that decides which contender may work.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArmKind {
    /// A lock.
    Lock,
    /// The version column of a row in PostgreSQL.
    Version,
    /// The status of a job in PostgreSQL.
    Jobs,
}

/// How attempts arrive.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalKind {
    /// At even intervals.
    Even,
    /// A Poisson process.
    Random,
}

impl From<ArmKind> for Arm {
    fn from(arm: ArmKind) -> Self {
        match arm {
            ArmKind::Lock => Self::Lock,
            ArmKind::Version => Self::Version,
            ArmKind::Jobs => Self::Jobs,
        }
    }
}

impl Contend {
    pub(crate) fn run(self) -> Outcome {
        if let Some(out) = &self.out {
            try_keep(out, &self.identity.history().into_iter().collect::<Vec<_>>())?;
        }
        let recording = self.identity.record(&self.identity.name_or("contend"))?;
        let load = Load {
            arm: self.arm.into(),
            place: self.place()?,
            primitive: self.primitive,
            ttl: self.lock.ttl,
            work: self.work,
            pause: self.pause,
            contenders: self.contenders,
            key: self.key,
            keys: self.keys,
            rate: self.rate,
            arrivals: match self.arrivals {
                ArrivalKind::Even => Arrivals::Even,
                ArrivalKind::Random => Arrivals::Random { seed: self.seed },
            },
            patience: self.patience,
            lasts: self.lasts,
            polled: self.polled,
            fenced: self.fence == Fencing::On,
        };
        let executor = Builder::new_current_thread().enable_all().build()?;
        self.metrics.serve("contend", &executor)?;
        let busy_poll = self.lock.busy_poll;
        let stop = super::stop_on_signals()?;
        let report = executor.block_on(async {
            let runtime = TokioRuntime::new(Handle::current()).polling_busily(busy_poll);
            contend_until(load, runtime, stop).await
        })?;
        let printed = print(&report.to_string());
        if let Some(out) = &self.out {
            keep(&report, out)?;
            written(out);
        }
        printed?;
        super::finish(recording)?;
        if report.served == 0 {
            eprintln!("real: no attempt was served: see the report");
        }
        Ok(report.failed == 0 && report.served > 0)
    }

    /// Returns the lock servers; for a mechanism without a lock, the database.
    fn place(&self) -> Result<Place, Box<dyn Error>> {
        let is_fenced = self.arm == ArmKind::Lock && self.fence == Fencing::On;
        if self.lock.tokens.is_some() && !is_fenced {
            let problem = "--tokens: these attempts demand no fencing token: leave it out, or give \
                           --arm lock and --fence on";
            return Err(problem.into());
        }
        match (self.arm, &self.postgres) {
            // Whatever the system: it is not used.
            (ArmKind::Version | ArmKind::Jobs, Some(url)) => Ok(Place::new(System::Redis, vec![url.clone()])),
            _ => self.lock.place(self.primitive),
        }
    }
}
