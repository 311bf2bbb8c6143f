//! The museum as a subject: the laboratory with the mistake named by the schedule or by the caller.

use std::collections::BTreeSet;
use std::path::Path;

use history::VerdictKind;
use sim::{
    Draw, FieldPath, Invalid, Report, RunError, Schedule, ScheduleError, Sim, Span, Subject, holder_accepted,
    own_key, own_token,
};

use super::Mutant;
use crate::{Arm, Lab, Options, System, validate};

/// The laboratory in one arm, with one mistake or none.
#[derive(Clone, Debug)]
pub struct Museum {
    lab: Lab,
    mutant: Option<Mutant>,
    is_twin: bool,
}

impl Museum {
    /// Returns the laboratory in this arm. The option `mutant` of a schedule names its mistake, if any.
    pub fn new(arm: Arm) -> Self {
        Self { lab: Lab::new(arm), mutant: None, is_twin: false }
    }

    /// Sets the mistake, which takes precedence over the schedule's.
    #[must_use]
    pub fn with(self, mutant: Mutant) -> Self {
        Self { lab: self.lab.without_tls(), mutant: Some(mutant), ..self }
    }

    /// Puts the exhibit's twin, which lacks the mistake, into the laboratory. Every schedule that convicts
    /// the mistake must acquit the twin.
    #[must_use]
    pub fn twin(self) -> Self {
        Self { is_twin: true, ..self }
    }

    /// Restricts random schedules to `system`.
    #[must_use]
    pub fn drawing(self, system: System) -> Self {
        Self { lab: self.lab.drawing(system), ..self }
    }

    /// Writes the mistake into the drawn schedule if its system can have it, so that its file replays, and
    /// changes options with which the mistake can't be shown.
    fn naming(&self, mut schedule: Schedule<Options>) -> Schedule<Options> {
        let applies = |mutant: &Mutant| mutant.exhibit().applies_to(schedule.options.system);
        let mutant = self.mutant.filter(applies);
        schedule.options.mutant = mutant.map(|mutant| mutant.name().to_owned());
        if let Some(mutant) = mutant {
            mutant.suit(&mut schedule.options);
        }
        if validate(&schedule).is_err() {
            without_unfit(&mut schedule);
        }
        schedule
    }

    /// Returns the mistake of a run with these options.
    fn mutant(&self, options: &Options) -> Result<Option<Mutant>, Invalid> {
        match self.mutant {
            Some(mutant) => Ok(Some(mutant)),
            None => named(options),
        }
    }
}

/// Drops the faults that no longer suit a schedule whose options were changed.
fn without_unfit(schedule: &mut Schedule<Options>) {
    for fault in std::mem::take(&mut schedule.faults) {
        schedule.faults.push(fault);
        if validate(schedule).is_err() {
            schedule.faults.pop();
        }
    }
}

/// Returns the mutant that the options name.
fn named(options: &Options) -> Result<Option<Mutant>, Invalid> {
    let Some(name) = &options.mutant else { return Ok(None) };
    let problem = match Mutant::named(name) {
        Some(mutant) if mutant.exhibit().applies_to(options.system) => return Ok(Some(mutant)),
        Some(_) => format!("`{name}` does not apply to `{}`", options.system),
        None => {
            let known: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
            format!("unknown mutant `{name}`: known are {}", known.join(", "))
        }
    };
    Err(FieldPath::top("mutant").says(problem))
}

impl Subject for Museum {
    type Options = Options;

    fn arm(&self) -> &'static str {
        self.lab.arm()
    }

    fn arms(&self) -> &'static [&'static str] {
        self.lab.arms()
    }

    fn draw(&self, from: &mut Draw) -> Options {
        self.lab.draw(from)
    }

    fn schedule(&self, from: &mut Draw) -> Result<Schedule<Options>, Invalid> {
        // Both arms get the same schedules.
        let arm = Self { lab: self.lab.clone().in_arm(Arm::Fenced), ..self.clone() };
        let steps = |schedule: &Schedule<Options>| sim::sim::steps(&arm, &self.naming(schedule.clone()));
        Ok(self.naming(self.lab.schedule_with(from, &steps)))
    }

    fn build(&self, options: &Options, sim: &mut Sim) -> Result<(), Invalid> {
        // The fence refuses the writes of a lease with a wrong token or key, so that no verdict shows the
        // mistake.
        sim.check("own token", own_token());
        sim.check("own key", own_key());
        sim.check("holder accepted", holder_accepted());
        let Some(mutant) = self.mutant(options)? else { return self.lab.build(options, sim) };
        let (exhibit, mut options, lab) = (mutant.exhibit(), options.clone(), self.lab.clone());
        if self.is_twin {
            return exhibit.put_twin_into(lab, options.system).build(&options, sim);
        }
        exhibit.deploy(&mut options);
        exhibit.put_into(lab, options.system).build(&options, sim)
    }

    fn smaller(&self, options: &Options) -> Vec<Options> {
        self.lab.smaller(options)
    }

    fn task(&self, options: &Options, process: &str) -> Option<String> {
        self.lab.task(options, process)
    }

    fn check(&self, schedule: &Schedule<Options>, sim: &Sim) -> Result<(), Invalid> {
        self.lab.check(schedule, sim)
    }

    fn limit(&self, schedule: &Schedule<Options>) -> Span {
        self.lab.limit(schedule)
    }

    fn excused(&self, schedule: &Schedule<Options>) -> BTreeSet<VerdictKind> {
        self.lab.excused(schedule)
    }
}

/// Loads the schedule in the file at `path`, which may name a mutant.
///
/// # Errors
///
/// As [`lab::load`](crate::load).
pub fn load(path: &Path) -> Result<Schedule<Options>, ScheduleError> {
    sim::sim::load(&Museum::new(Arm::Fenced), path)
}

/// Runs one arm of the schedule, which may name a mutant, with all randomness keyed by `seed`.
///
/// # Errors
///
/// [`RunError`] if the schedule is not valid, or the run itself fails. A verdict is not an error.
pub fn run(schedule: &Schedule<Options>, arm: Arm, seed: u64) -> Result<Report, RunError> {
    run_as(&Museum::new(arm), schedule, seed)
}

/// Runs one arm of the schedule with this mistake, which takes precedence over the schedule's.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    schedule: &Schedule<Options>,
    arm: Arm,
    seed: u64,
    mutant: Mutant,
) -> Result<Report, RunError> {
    run_as(&Museum::new(arm).with(mutant), schedule, seed)
}

fn run_as(museum: &Museum, schedule: &Schedule<Options>, seed: u64) -> Result<Report, RunError> {
    sim::sim::build(museum, schedule)?.with_seed(seed).run()
}
