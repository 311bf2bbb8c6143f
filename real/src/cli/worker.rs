//! `worker`: runs the lab's worker.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use real::pause::{How, Pause};
use real::primitive::Primitive;
use real::record::Record;
use real::work::{Done, Plan, carry_out};
use resource::Fencing;
use resource::worker::Step;

use super::fencing;
use super::lock::LockArgs;
use super::metrics::MetricsArgs;
use super::tls::ResourceAccess;
use super::{Identity, Outcome, Switch, print, span};

/// The flags of `worker`.
#[derive(Args)]
pub(crate) struct Worker {
    #[command(flatten)]
    lock: LockArgs,
    /// The address of the resource, as `real resource` prints it: host:port, or https://host:port.
    #[arg(long, env = "DLOCK_RESOURCE", default_value = "127.0.0.1:8080")]
    resource: String,
    /// Demands that the resource runs with the same --fence, and ends with an error before the first round
    /// otherwise. The resource decides: a worker always sends its tokens.
    #[arg(long, env = "DLOCK_FENCE", value_parser = fencing::parser())]
    fence: Option<Fencing>,
    /// The primitive: mutex, bounded:M (a mutex for which at most M wait), semaphore:N, readers (of three
    /// rounds two read), several:K (keys at once), reentrant:D (nested sections), election, single-flight,
    /// cron:TIME (a tick every so often) or jobs (a queue, on Redis or PostgreSQL, to which a round adds a
    /// job).
    #[arg(long, env = "DLOCK_PRIMITIVE", default_value_t, value_name = "KIND")]
    primitive: Primitive,
    /// The record of ticks and jobs: the resource, or tables on PostgreSQL, which commit them with a row of
    /// the worker's own. These are the queue of jobs, too: it needs no lock servers.
    #[arg(long, env = "DLOCK_RECORD", value_enum, default_value_t)]
    record: Record,
    /// The database of --record postgres: postgresql://user@host:port/database.
    #[arg(
        long,
        env = "DLOCK_POSTGRES",
        value_name = "URL",
        hide_env_values = true,
        required_if_eq("record", "postgres")
    )]
    postgres: Option<String>,
    /// The duration of the work between the grant and the write.
    #[arg(long, env = "DLOCK_WORK", value_parser = span::parse, default_value = "50ms")]
    work: Duration,
    /// Pauses the whole contender before the write, as a garbage collection does: after the check of the
    /// lease, or after the work with --check off.
    #[arg(long, env = "DLOCK_PAUSE", value_parser = span::parse, default_value = "0")]
    pause: Duration,
    /// Stops the process by SIGSTOP instead of --pause; `kill -CONT` continues it.
    #[arg(long, env = "DLOCK_STOP", conflicts_with = "pause")]
    stop: bool,
    /// The number of contenders, each with a thread and connections of its own.
    #[arg(
        long,
        env = "DLOCK_CONTENDERS",
        value_parser = clap::value_parser!(u64).range(1..=1000),
        default_value_t = 1
    )]
    contenders: u64,
    /// The prefix of the keys: NAME:0, NAME:1 and so on.
    #[arg(long, env = "DLOCK_KEY", default_value = "account", value_name = "NAME")]
    key: String,
    /// The number of keys they contend for.
    #[arg(long, env = "DLOCK_KEYS", default_value_t = 1)]
    keys: u64,
    /// The number of the first contender's key; the next contender has the next key.
    #[arg(long, env = "DLOCK_FIRST_KEY", default_value_t = 0, value_name = "NUMBER")]
    first_key: u64,
    /// The number of rounds of each contender.
    #[arg(long, env = "DLOCK_ROUNDS", default_value_t = 1)]
    rounds: u64,
    /// The rest of a contender between two rounds.
    #[arg(long, env = "DLOCK_REST", value_parser = span::parse, default_value = "0")]
    rest: Duration,
    /// Makes a contender claim the resource before it works, by a read with its fencing token: from then on
    /// the resource refuses writes with older tokens.
    #[arg(long, env = "DLOCK_CLAIM", value_enum, default_value = "off")]
    claim: Switch,
    /// Makes a contender check that its lease is still valid before it writes.
    #[arg(long, env = "DLOCK_CHECK", value_enum, default_value = "on")]
    check: Switch,
    /// Renews the lease while working, for at most this time.
    #[arg(long, env = "DLOCK_RENEW", value_parser = span::parse, value_name = "CAP")]
    renew: Option<Duration>,
    /// The timeout for acquiring the lock.
    #[arg(long, env = "DLOCK_ACQUIRE_TIMEOUT", value_parser = span::parse, default_value = "30s")]
    acquire_timeout: Duration,
    #[command(flatten)]
    access: ResourceAccess,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    identity: Identity,
}

impl Worker {
    pub(crate) fn run(self) -> Outcome {
        let name = self.identity.name_or("worker");
        let recording = self.identity.record(&name)?;
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        self.metrics.serve("worker", &executor)?;
        let rounds = Mutex::new(Rounds::default());
        carry_out(&self.plan(name)?, &super::stop_on_signals()?, |done| {
            rounds.lock().unwrap_or_else(PoisonError::into_inner).add(&done);
            // Ignore a closed stdout.
            let _ = print(&format!("{}\n", done.line()));
        })?;
        super::finish(recording)?;
        let rounds = rounds.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(problem) = rounds.problem() {
            eprintln!("real: {problem}");
        }
        Ok(rounds.failed == 0)
    }

    fn plan(self, name: String) -> Result<Plan, Box<dyn std::error::Error>> {
        let how = match (self.stop, self.pause) {
            (true, _) => How::Stop,
            (false, Duration::ZERO) => How::Not,
            (false, pause) => How::World(pause),
        };
        self.record.check(self.primitive, self.fence)?;
        let postgres = self.postgres.filter(|_| self.record == Record::Postgres);
        let needs_lock = self.record.needs_lock(self.primitive);
        let (resource, resource_tls) = self.access.resource(&self.resource)?;
        let check = self.check.is_on();
        // Without a check, the end of the work is the last step before the write.
        let at = if check && self.primitive.checks_lease() { Step::Checked } else { Step::Worked };
        Ok(Plan {
            name,
            place: needs_lock.then(|| self.lock.place(self.primitive)).transpose()?,
            postgres,
            resource,
            resource_tls,
            resource_token: self.access.token()?,
            fencing: self.fence,
            primitive: self.primitive,
            ttl: self.lock.ttl,
            work: self.work,
            pause: Pause { at, how },
            contenders: self.contenders,
            key: self.key,
            keys: self.keys,
            first_key: self.first_key,
            claim: self.claim.is_on(),
            check,
            renew: self.renew,
            rounds: self.rounds,
            rest: self.rest,
            acquire_timeout: self.acquire_timeout,
            busy_poll: self.lock.busy_poll,
        })
    }
}

/// The rounds of all contenders.
#[derive(Default)]
struct Rounds {
    all: u64,
    /// The number of rounds without a write.
    failed: u64,
    /// The first failed round.
    first: String,
}

impl Rounds {
    fn add(&mut self, done: &Done) {
        self.all += 1;
        if done.has_failed {
            self.failed += 1;
            if self.failed == 1 {
                self.first = done.line();
            }
        }
    }

    /// Returns what went wrong, if anything did.
    fn problem(&self) -> Option<String> {
        let Self { all, failed, first } = self;
        (*failed > 0).then(|| format!("{failed} of {all} writes failed, the first: {first}"))
    }
}
