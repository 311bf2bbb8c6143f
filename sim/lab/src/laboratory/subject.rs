//! The laboratory as a subject: it builds a world from its options, in one of two arms.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dlock::AnyBackend;
use futures_util::future::BoxFuture;
use history::{Rules, VerdictKind};
use resource::http::Config;
use sim::servers::resource::ResourceHost;
use sim::world::runtime::SimRuntime;
use sim::{
    Check, Draw, FieldPath, Invalid, Report, RunError, Schedule, ScheduleError, Sim, Span, Step, Subject,
};

use super::arm::{ARMS, Arm};
use super::draw;
use super::excuses::excused;
use super::given::{AddCheck, Given, Layout, MakeResource, StoredLock, Workplace};
use super::hosts::hosts;
use super::jobs;
use super::options::{Options, RESOURCE};
use super::smaller::smaller;
use super::system::System;
use super::validate::validate;
use super::worker::WorkerMode;
use super::workloads;

/// The real time of a run: no limit here, since the commands have their own (`--hang`).
const REAL_LIMIT: Duration = Duration::from_secs(86_400);

/// The laboratory in one arm.
#[derive(Clone)]
pub struct Lab {
    arm: Arm,
    /// The system of all drawn schedules, if it is fixed.
    drawn: Option<System>,
    /// True if it draws lock servers over TLS in some schedules.
    draws_tls: bool,
    given: Given,
    resource: Option<MakeResource>,
    layout: Option<Layout>,
    checks: Vec<AddCheck>,
}

impl Lab {
    /// Creates the laboratory in this arm.
    pub fn new(arm: Arm) -> Self {
        let (given, checks) = (Given::default(), Vec::new());
        Self { arm, drawn: None, draws_tls: true, given, resource: None, layout: None, checks }
    }

    /// Restricts random schedules to `system`.
    #[must_use]
    pub fn drawing(self, system: System) -> Self {
        Self { drawn: Some(system), ..self }
    }

    /// Restricts random schedules to lock servers without TLS, for locks that don't speak it.
    #[must_use]
    pub fn without_tls(self) -> Self {
        Self { draws_tls: false, ..self }
    }

    /// Replaces the lock of workers by the one that `make` returns; `None` keeps the system's own. Calls
    /// `make` in every life of a worker's process.
    #[must_use]
    pub fn with_lock<F>(mut self, make: F) -> Self
    where
        F: Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync + 'static,
    {
        self.given.lock = Some(Arc::new(make));
        self
    }

    /// Replaces the rounds of workers that use the lock by those that `make` returns; `None` keeps the
    /// laboratory's own. Calls `make` in every life of a worker's process.
    ///
    /// A fault that is aimed at a step of a worker strikes when the rounds pass the point of that name:
    /// [`Process::point`](sim::Process::point).
    #[must_use]
    pub fn with_worker<F>(mut self, make: F) -> Self
    where
        F: Fn(&Workplace<'_>) -> Option<BoxFuture<'static, ()>> + Send + Sync + 'static,
    {
        self.given.worker = Some(Arc::new(make));
        self
    }

    /// Replaces the resource. Calls `make` for each run, with the laboratory's options and the resource's
    /// configuration, which turns the check of tokens on or off.
    #[must_use]
    pub fn with_resource(
        self,
        make: impl Fn(&Options, Config) -> ResourceHost + Send + Sync + 'static,
    ) -> Self {
        Self { resource: Some(Arc::new(make)), ..self }
    }

    /// Records the locks that are stored in another form than the library's: `layout` returns it for each key
    /// of a schedule. The audit then knows who holds a lock of your own, and who deletes or extends it.
    #[must_use]
    pub fn with_stored_locks(self, layout: impl Fn(&str) -> StoredLock + Send + Sync + 'static) -> Self {
        Self { layout: Some(Arc::new(layout)), ..self }
    }

    /// Adds a check beside the audit, called `name`. Calls `make` for each run. A name may be given once.
    #[must_use]
    pub fn with_check<C: Check>(mut self, name: &str, make: impl Fn() -> C + Send + Sync + 'static) -> Self {
        let name = name.to_owned();
        self.checks.push(Arc::new(move |sim: &mut Sim| {
            sim.check(&name, make());
        }));
        self
    }

    /// Returns both arms, the unfenced one first.
    pub fn arms() -> [Self; 2] {
        [Self::new(Arm::Unfenced), Self::new(Arm::Fenced)]
    }

    /// Draws a schedule, for a subject that contains the laboratory. `steps` returns the
    /// [steps](sim::sim::steps) of a schedule in that subject: strategies aim faults at them.
    pub fn schedule_with(
        &self,
        from: &Draw,
        steps: &dyn Fn(&Schedule<Options>) -> Vec<Step>,
    ) -> Schedule<Options> {
        draw::draw_from(self.system_of(from), from, self.draws_tls(), steps)
    }

    /// Returns the same laboratory in another arm.
    #[must_use]
    pub fn in_arm(self, arm: Arm) -> Self {
        Self { arm, ..self }
    }

    fn system_of(&self, from: &Draw) -> System {
        self.drawn.unwrap_or_else(|| draw::system(from.seed()))
    }

    fn draws_tls(&self) -> bool {
        self.draws_tls && !self.has_others()
    }

    /// Returns true if a user has given it a lock, a worker or a resource.
    fn has_others(&self) -> bool {
        self.given.lock.is_some() || self.given.worker.is_some() || self.resource.is_some()
    }

    /// Returns the locks that the given layout stores, each with its key in the schedule.
    fn stored_locks<'o>(&self, options: &'o Options) -> Result<Vec<(StoredLock, &'o str)>, Invalid> {
        let Some(layout) = &self.layout else { return Ok(Vec::new()) };
        let stored: Vec<_> = options.keys.iter().map(|key| (layout(key), key.as_str())).collect();
        let queue = stored.iter().position(|(stored, _)| !matches!(stored, StoredLock::Key(_)));
        match queue.filter(|_| !options.system.get().has_queues()) {
            Some(at) => Err(FieldPath::top("keys").index(at).says(format!(
                "its lock is stored as a queue, which `{}` does not have: store it as a key",
                options.system
            ))),
            None => Ok(stored),
        }
    }

    /// Refuses a mutant without a given lock, worker or resource: no code would make the mistake.
    fn check_mutant(&self, options: &Options) -> Result<(), Invalid> {
        match &options.mutant {
            Some(mutant) if !self.has_others() => {
                let problem = format!("unknown mutant `{mutant}`: the laboratory itself has none");
                Err(FieldPath::top("mutant").says(problem))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab").field("arm", &self.arm).finish_non_exhaustive()
    }
}

impl Subject for Lab {
    type Options = Options;

    fn arm(&self) -> &'static str {
        self.arm.name()
    }

    fn arms(&self) -> &'static [&'static str] {
        &ARMS
    }

    fn draw(&self, from: &mut Draw) -> Options {
        draw::options_for(self.system_of(from), from.seed(), self.draws_tls())
    }

    fn schedule(&self, from: &mut Draw) -> Result<Schedule<Options>, Invalid> {
        // Both arms get the same schedules.
        let arm = self.clone().in_arm(Arm::Fenced);
        Ok(self.schedule_with(from, &|schedule| sim::sim::steps(&arm, schedule)))
    }

    fn build(&self, options: &Options, sim: &mut Sim) -> Result<(), Invalid> {
        self.check_mutant(options)?;
        if options.tls && self.has_others() {
            let problem = "`tls` = true: a lock, worker or resource that is given speaks without TLS";
            return Err(FieldPath::top("tls").says(problem));
        }
        let shared = Arc::new(options.clone());
        for (number, worker) in options.workers.iter().enumerate() {
            let options = Arc::clone(&shared);
            let (given, fencing) = (self.given.clone(), self.arm.fencing());
            sim.process(&worker.name, move |process| {
                workloads::main(process, Arc::clone(&options), number, given.clone(), fencing)
            });
        }
        let stored = self.stored_locks(options)?;
        for (name, host) in hosts(options, self.arm.fencing(), self.resource.as_ref(), &stored) {
            if name == RESOURCE {
                sim.shared_resource(&name, host);
            } else {
                sim.shared_host(&name, host);
            }
        }
        self.checks.iter().for_each(|add| add(sim));
        let system = options.system.get();
        system.prepare(sim);
        if let Some(cluster) = options.cluster() {
            sim.cluster(cluster);
        }
        let quorum = system.quorum(options);
        if !quorum.is_empty() {
            sim.quorum(quorum);
        }
        for key in &options.keys {
            sim.key(key).capacity(key, options.capacity());
        }
        for resource in jobs::resources(options) {
            sim.key(&resource);
        }
        let longest_ttl =
            options.workers.iter().map(|worker| options.ttl_of(worker)).max().unwrap_or_default();
        let grace = system.key_grace(options);
        sim.scale(options.ttl.duration())
            .linger(longest_ttl.duration() + grace + Duration::from_secs(1))
            .real_limit(REAL_LIMIT)
            .rules(Rules {
                fifo: system.is_fair(options),
                served_within: Some(options.within().duration()),
                ttl: Some(options.ttl.duration()),
                grace,
                sessions: options.cluster().is_some(),
                servers: system.voters(options),
                one_task: true,
                exact: true,
                longest_retry: Some(options.longest_retry().duration()),
                ..Rules::default()
            });
        Ok(())
    }

    fn smaller(&self, options: &Options) -> Vec<Options> {
        smaller(options)
    }

    fn task(&self, options: &Options, process: &str) -> Option<String> {
        let mode = &options.worker(process)?.mode;
        (*mode != WorkerMode::default()).then(|| mode.name().to_owned())
    }

    fn check(&self, schedule: &Schedule<Options>, _: &Sim) -> Result<(), Invalid> {
        validate(schedule)
    }

    fn limit(&self, schedule: &Schedule<Options>) -> Span {
        schedule.limit.max(draw::long_enough(schedule))
    }

    fn excused(&self, schedule: &Schedule<Options>) -> BTreeSet<VerdictKind> {
        excused(schedule, self.arm)
    }
}

/// Parses the TOML text of a schedule of the laboratory. Errors name it `file`.
///
/// # Errors
///
/// [`ScheduleError::Invalid`] with the line of the error.
pub fn parse(file: &str, text: &str) -> Result<Schedule<Options>, ScheduleError> {
    sim::sim::parse(&Lab::new(Arm::Fenced), file, text)
}

/// Loads the schedule of the laboratory in the file at `path`.
///
/// # Errors
///
/// [`ScheduleError::Read`] if the file can't be read, else as [`parse`].
pub fn load(path: &Path) -> Result<Schedule<Options>, ScheduleError> {
    sim::sim::load(&Lab::new(Arm::Fenced), path)
}

/// Runs one arm of the schedule with all randomness keyed by `seed`.
///
/// # Errors
///
/// [`RunError`] if the schedule is not valid, or the run itself fails. A verdict is not an error.
pub fn run(schedule: &Schedule<Options>, arm: Arm, seed: u64) -> Result<Report, RunError> {
    sim::sim::build(&Lab::new(arm), schedule)?.with_seed(seed).run()
}
