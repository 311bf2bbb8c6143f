//! Follows a search: keeps violations as they are found, rewrites the summary, and decides when it ends.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};
use std::time::Duration;

use lab::museum::{Museum, run};
use lab::{Arm, Options, System, draw_for};
use sim::explore::fleet::{Canary, Capsule, Capsules, FleetError, Origin, Summary};
use sim::explore::{Found, RUNS_MAX, Tally, Violation, Watch, shrink};
use sim::{RunError, Schedule};

use super::super::interrupted;
use super::super::progress::Progress;
use super::super::stopwatch::Stopwatch;
use super::super::written;
use super::{Plan, canary, cores, estimate, show, show_end};

/// The time between two summaries.
const SAVED_EVERY: Duration = Duration::from_secs(5);

/// A search that is followed.
pub(super) struct Following<'a> {
    plan: &'a Plan,
    began: Stopwatch,
    progress: Progress,
    state: Mutex<State>,
    /// The schedules that are run now.
    running: Mutex<Vec<Running>>,
}

/// A schedule that is run.
struct Running {
    thread: ThreadId,
    began: Stopwatch,
    /// The seed from which it was drawn.
    seed: u64,
    schedule: Schedule<Options>,
}

struct State {
    summary: Summary,
    capsules: Capsules,
    saved: Stopwatch,
}

impl State {
    /// Notes what could not be kept. The search goes on: it could end before the violation is counted.
    fn fail(&mut self, error: &FleetError) {
        let problem = format!("NOT KEPT: {error}");
        if !self.summary.problems.contains(&problem) {
            self.summary.problems.push(problem);
        }
    }
}

impl<'a> Following<'a> {
    /// Begins to follow a search that began at `began`, with a first look for the known mistake.
    pub(super) fn new(plan: &'a Plan, began: Stopwatch) -> Result<Self, Box<dyn Error>> {
        let mut summary = Summary::new(origin(plan)?, cores(plan.threads));
        if plan.has_canary {
            let mut canary = canary::new();
            canary::sing(&mut canary, plan.first, began)?;
            summary.canary = Some(canary);
        }
        if let Some(folder) = &plan.out
            && let Some(other) = summary.keep_other(folder)?
        {
            written(&other);
        }
        let state = State { summary, capsules: Capsules::in_folder(&plan.folder()), saved: began };
        let progress = Progress::new(plan.seeds, "schedules");
        let following = Self { plan, began, progress, state: Mutex::new(state), running: Mutex::default() };
        following.save(&lock(&following.state).summary)?;
        Ok(following)
    }

    /// Ends the search: writes the last summary. That of a search that was interrupted has no end. If writing
    /// fails, it is a problem of the search.
    pub(super) fn end(
        &self,
        searched: Result<Found<Options>, RunError>,
    ) -> Result<Found<Options>, Box<dyn Error>> {
        match &searched {
            Ok(found) => show_end(&self.progress, &found.tally),
            Err(_) => self.progress.finish(),
        }
        let mut state = lock(&self.state);
        let summary = &mut state.summary;
        let ended = match &searched {
            Ok(found) => {
                summary.update(&found.tally, self.began.elapsed().as_secs_f64());
                if found.tally.violations >= self.plan.failures {
                    format!("{} violations", self.plan.failures)
                } else if self.is_stable(&found.tally) {
                    "it was stable".to_owned()
                } else if self.is_over() {
                    "its time was over".to_owned()
                } else {
                    "all seeds were searched".to_owned()
                }
            }
            Err(error) => {
                summary.problems.push(error.to_string());
                "a run failed".to_owned()
            }
        };
        summary.ended = Some(ended).filter(|_| !interrupted());
        if let Some(canary) = summary.canary.as_ref().filter(|canary| canary.missed > 0 || canary.found == 0)
        {
            let (mistake, missed) = (&canary.mistake, canary.missed);
            let problem = format!("the known mistake `{mistake}` was missed {missed} times");
            summary.problems.push(problem);
        }
        match self.save(&state.summary) {
            Ok(()) => self.plan.out.iter().for_each(|out| written(&out.join("summary.json"))),
            Err(error) => state.fail(&error),
        }
        Ok(searched?)
    }

    /// Returns the problems of the search.
    pub(super) fn problems(&self) -> Vec<String> {
        lock(&self.state).summary.problems.clone()
    }

    /// Returns the best capsule of the violation's cause. A violation whose cause has none is kept now.
    pub(super) fn best(&self, violation: &Violation<Options>) -> Capsule {
        let cause = violation.cause.to_string();
        let best = || lock(&self.state).capsules.iter().find(|capsule| capsule.cause == cause).cloned();
        best().unwrap_or_else(|| {
            self.violation(violation);
            best().unwrap_or_else(|| drawn(violation, lock(&self.state).summary.search.clone()))
        })
    }

    /// If a schedule has been running for longer than `longest`, saves it as a capsule and returns the
    /// problem.
    pub(super) fn hang(&self, longest: Duration) -> Option<String> {
        let (seed, schedule) = {
            let running = lock(&self.running);
            let hangs = running.iter().find(|running| running.began.elapsed() > longest)?;
            (hangs.seed, hangs.schedule.clone())
        };
        let mut state = lock(&self.state);
        let (arm, text) = (Arm::Fenced.name(), schedule.to_toml());
        let name = format!("{}-hang", name(arm, seed));
        let problem = format!(
            "the schedule of seed {seed} did not end within {} s of real time: {}",
            longest.as_secs_f64(),
            self.plan.folder().join(format!("{name}.toml")).display()
        );
        let capsule = Capsule {
            name,
            cause: "hang".to_owned(),
            arm: arm.to_owned(),
            verdicts: Vec::new(),
            findings: vec![problem.clone()],
            seed,
            faults: schedule.faults.len(),
            schedule: text.clone(),
            drawn: text,
            trace_hash: None,
            search: state.summary.search.clone(),
        };
        let saved = state.capsules.add(capsule);
        state.summary.violations += 1;
        state.summary.problems.push(problem.clone());
        state.summary.ended = Some("a run has no end".to_owned());
        match saved.and_then(|()| self.save(&state.summary)) {
            Ok(()) => Some(problem),
            Err(error) => Some(format!("{problem}\n\n{}\nNOT KEPT: {error}", schedule.to_toml())),
        }
    }

    /// Saves the summary if a folder for it was given.
    fn save(&self, summary: &Summary) -> Result<(), FleetError> {
        self.plan.out.as_deref().map_or(Ok(()), |folder| summary.save(folder))
    }

    fn is_stable(&self, tally: &Tally) -> bool {
        self.plan.until_stable && tally.is_stable()
    }

    fn is_over(&self) -> bool {
        self.plan.longest.is_some_and(|longest| self.began.elapsed() >= longest)
    }

    /// Keeps a capsule and names its file. If that fails, notes it and prints the schedule.
    fn keep(&self, capsule: Capsule) {
        let mut state = lock(&self.state);
        let (cause, seed, schedule) = (capsule.cause.clone(), capsule.seed, capsule.schedule.clone());
        if let Err(error) = state.capsules.add(capsule) {
            state.fail(&error);
            self.show(&format!("violation: {cause}\n\n{schedule}\nNOT KEPT: {error}"));
        } else if let Some(kept) =
            state.capsules.iter().find(|kept| kept.seed == seed && kept.schedule == schedule)
        {
            self.show(&format!("written: {}", state.capsules.path(kept).display()));
        }
    }

    /// Prints a line on standard error, above the progress bar.
    fn show(&self, line: &str) {
        self.progress.say(line);
    }

    /// Searches for the known mistake if the last search for it is long ago, unless another thread does.
    fn sing_if_due(&self) {
        // Also after a search that did not find it: another one at once would leave no time for the seeds.
        let elapsed = self.began.elapsed().as_secs_f64();
        let is_due = |canary: &Canary| elapsed > canary::EVERY * (canary.found + canary.missed) as f64;
        let mut canary = {
            let mut state = lock(&self.state);
            match state.summary.canary.take_if(|canary| is_due(canary)) {
                Some(canary) => canary,
                None => return,
            }
        };
        let sung = canary::sing(&mut canary, self.plan.first, self.began);
        let mut state = lock(&self.state);
        state.summary.canary = Some(canary);
        if let Err(error) = sung {
            state.summary.problems.push(error.to_string());
        }
    }
}

impl Watch<Options> for Following<'_> {
    fn begins(&self, seed: u64, schedule: &Schedule<Options>) {
        let (thread, began, schedule) = (current().id(), Stopwatch::start(), schedule.clone());
        lock(&self.running).push(Running { thread, began, seed, schedule });
    }

    fn ended(&self) {
        let own = current().id();
        lock(&self.running).retain(|running| running.thread != own);
        self.sing_if_due();
    }

    /// Shows the violation, and saves the schedule as it was drawn at once, and again when it is shrunk.
    fn violation(&self, violation: &Violation<Options>) {
        let (cause, seed) = (violation.cause.to_string(), violation.drawn_from);
        if !lock(&self.state).capsules.would_keep(&cause, violation.schedule.faults.len(), seed) {
            return;
        }
        self.show(&format!("violation: {cause}, seed {seed}"));
        let search = lock(&self.state).summary.search.clone();
        self.keep(drawn(violation, search));
        // To shrink it takes many runs.
        if interrupted() {
            return;
        }
        match capsule(self.plan, violation) {
            Ok(shrunk) => self.keep(shrunk),
            Err(error) => lock(&self.state).summary.problems.push(error.to_string()),
        }
    }

    fn goes_on(&self, tally: &Tally) -> bool {
        if let Some(longest) = self.plan.longest {
            let estimate = estimate(tally.schedules, self.began.elapsed(), longest);
            self.progress.set_length(estimate.min(self.plan.seeds));
        }
        show(&self.progress, tally);
        let mut state = lock(&self.state);
        if state.saved.elapsed() >= SAVED_EVERY {
            state.saved = Stopwatch::start();
            state.summary.update(tally, self.began.elapsed().as_secs_f64());
            if let Err(error) = self.save(&state.summary) {
                state.fail(&error);
            }
        }
        let is_over = interrupted() || self.is_over() || self.is_stable(tally);
        !is_over && tally.violations < self.plan.failures
    }
}

/// Returns the capsule of a violation, shrunk.
fn capsule(plan: &Plan, violation: &Violation<Options>) -> Result<Capsule, Box<dyn Error>> {
    let arm = violation.arm.parse::<Arm>()?;
    let mut shrunk = shrink(&Museum::new(arm), &violation.schedule, &violation.cause, RUNS_MAX).schedule;
    shrunk.about = violation.cause.name_in(&format!("{}, then shrunk.", violation.schedule.about));
    let hash = run(&shrunk, arm, shrunk.seed).ok().map(|report| format!("{:016x}", report.hash));
    let drawn = drawn(violation, origin(plan)?);
    Ok(Capsule { faults: shrunk.faults.len(), schedule: shrunk.to_toml(), trace_hash: hash, ..drawn })
}

/// Returns the capsule of a violation as it was drawn.
fn drawn(violation: &Violation<Options>, search: Origin) -> Capsule {
    let (seed, schedule) = (violation.drawn_from, violation.schedule.to_toml());
    Capsule {
        name: name(violation.arm, seed),
        cause: violation.cause.to_string(),
        arm: violation.arm.to_owned(),
        verdicts: violation.broken.iter().copied().collect(),
        findings: violation.findings.clone(),
        seed,
        faults: violation.schedule.faults.len(),
        schedule: schedule.clone(),
        drawn: schedule,
        trace_hash: None,
        search,
    }
}

/// Returns the name of a capsule's files.
fn name(arm: &str, seed: u64) -> String {
    let fence = if arm == Arm::Fenced.name() { "on" } else { "off" };
    format!("seed-{seed}-{fence}")
}

/// Returns where the results of a search come from.
fn origin(plan: &Plan) -> Result<Origin, RunError> {
    let hash = |system| Ok(format!("{:08x}", run(&draw_for(system, 0), Arm::Fenced, 0)?.hash >> 32));
    let hashes = System::searched().map(hash).collect::<Result<Vec<_>, RunError>>()?;
    let system = plan.system.map_or_else(|| "all systems".to_owned(), |system| system.to_string());
    let mistake = plan.mutant.map(|mutant| format!(" with {}", mutant.name())).unwrap_or_default();
    Ok(Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        behaviour: hashes.join("-"),
        subject: system + &mistake,
        strategy: plan.portfolio.to_string(),
        first: plan.first,
        shard: plan.shard.to_string(),
    })
}

/// Locks `mutex`, even if a thread panicked while it held it: the content is valid all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
