//! The laboratory as a subject: it builds a world of its options, in one of two arms.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use resource::audit::{Rules, VerdictKind};

use super::arm::{ARMS, Arm};
use super::draw;
use super::excuses::excused;
use super::hosts::hosts;
use super::options::{Options, RESOURCE};
use super::workloads;
use crate::mutants::Mutant;
use crate::place::Invalid;
use crate::sim::{self, Draw, Report, RunError, Schedule, ScheduleError, Sim, Subject};

/// The laboratory in one arm.
#[derive(Clone, Copy, Debug)]
pub struct Lab {
    arm: Arm,
    mutant: Option<Mutant>,
}

impl Lab {
    /// The laboratory in this arm.
    pub fn new(arm: Arm) -> Self {
        Self { arm, mutant: None }
    }

    /// The same with one mistake in every worker's lock or in the resource, whatever the schedule says.
    #[must_use]
    pub fn with_mutant(self, mutant: Mutant) -> Self {
        Self { mutant: Some(mutant), ..self }
    }

    /// Both arms, the unfenced one first.
    pub fn arms() -> [Self; 2] {
        [Self::new(Arm::Unfenced), Self::new(Arm::Fenced)]
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
        draw::draw(from.seed()).options
    }

    fn schedule(&self, from: &mut Draw) -> Result<Schedule<Options>, Invalid> {
        Ok(draw::draw(from.seed()))
    }

    fn build(&self, options: &Options, sim: &mut Sim) -> Result<(), Invalid> {
        let mutant = self.mutant.or(options.mutant);
        for (number, worker) in options.workers.iter().enumerate() {
            let options = options.clone();
            let lock_mutant = mutant.filter(|mutant| !mutant.is_of_resource());
            sim.process(&worker.name, move |process| {
                workloads::main(process, options.clone(), number, lock_mutant)
            });
        }
        let mutant = mutant.filter(|mutant| mutant.is_of_resource());
        for (name, host) in hosts(options, self.arm.fencing(), mutant) {
            if name == RESOURCE {
                sim.shared_resource(&name, host);
            } else {
                sim.shared_host(&name, host);
            }
        }
        let system = options.system.get();
        system.prepare(sim);
        if let Some(cluster) = options.cluster() {
            sim.cluster(cluster);
        }
        for key in &options.keys {
            sim.key(key);
        }
        let longest_ttl =
            options.workers.iter().map(|worker| options.ttl_of(worker)).max().unwrap_or_default();
        let grace = system.key_grace();
        sim.scale(options.ttl.duration())
            .linger(longest_ttl.duration() + grace + Duration::from_secs(1))
            .rules(Rules {
                fifo: system.is_fair(options),
                served_within: Some(options.within().duration()),
                ttl: Some(options.ttl.duration()),
                grace,
                sessions: options.cluster().is_some(),
                servers: system.voters(options),
                exact: true,
                longest_retry: Some(LONGEST_RETRY),
                ..Rules::default()
            });
        Ok(())
    }

    fn check(&self, schedule: &Schedule<Options>, _: &Sim) -> Result<(), Invalid> {
        schedule.validate()
    }

    fn excused(&self, schedule: &Schedule<Options>) -> BTreeSet<VerdictKind> {
        excused(schedule, self.arm)
    }
}

impl Schedule<Options> {
    /// The schedule of the laboratory with this TOML text. `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Invalid`] with the line of what is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScheduleError> {
        sim::parse(&Lab::new(Arm::Fenced), file, text)
    }

    /// The schedule of the laboratory in the file at `path`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Read`] if the file can't be read, else as [`Schedule::parse`].
    pub fn load(path: &Path) -> Result<Self, ScheduleError> {
        sim::load(&Lab::new(Arm::Fenced), path)
    }
}

/// Runs one arm of the schedule with all randomness keyed by `seed`.
///
/// # Errors
///
/// [`RunError`] if the schedule is not valid, or the run itself fails. A verdict is not an error.
pub fn run(schedule: &Schedule<Options>, arm: Arm, seed: u64) -> Result<Report, RunError> {
    run_as(&Lab::new(arm), schedule, seed)
}

/// As [`run`], with one mistake in every worker's lock or in the resource: what the simulator must find.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    schedule: &Schedule<Options>,
    arm: Arm,
    seed: u64,
    mutant: Option<Mutant>,
) -> Result<Report, RunError> {
    run_as(&Lab { arm, mutant }, schedule, seed)
}

fn run_as(lab: &Lab, schedule: &Schedule<Options>, seed: u64) -> Result<Report, RunError> {
    sim::build(lab, schedule)?.with_seed(seed).run()
}

/// The longest backoff of the library (2 s), the longest time that it waits for an answer (1 s), and what the network takes.
const LONGEST_RETRY: Duration = Duration::from_secs(4);
