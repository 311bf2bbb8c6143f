//! One run: builds the world, lets its processes run while faults strike, and judges the history.

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::future::{Either, select};
use history::text::{self, Names};
use history::{Nanos, Rules, VerdictKind, audit};

use super::arrivals::{in_flight, last_arrival};
use super::builder::Sim;
use super::check::{Check, Evidence, Finding};
use super::control::{Control, strike_at};
use super::error::RunError;
#[cfg(unix)]
use super::own_process;
use super::panic;
use super::point;
use super::report::Report;
use super::stage::Stage;
use super::steps::Steps;
use super::thread;
use crate::entropy::Entropy;
use crate::faults::{self, Cancel, Injector};
use crate::probes::Probes;
use crate::record;
use crate::trace::messages::messages;
use crate::world::World;
use crate::world::escape::Watched;
use crate::world::process::ProcessId;

/// The main task of a run. The run ends with it.
trait Course: Send {
    type Output: Send;

    /// True for the user's script.
    const IS_SCRIPT: bool;

    /// Completes when the run is over. Returns `None` if it reached its limit first.
    fn run(
        self,
        control: Control,
        stage: Arc<Stage>,
        times: Times,
    ) -> impl Future<Output = Option<Self::Output>>;
}

/// The durations that end a run.
#[derive(Clone, Copy)]
struct Times {
    limit: Duration,
    /// The time for which messages may still be in flight.
    quiet: Duration,
    linger: Duration,
}

/// The run of all programs to their end.
struct Programs;

struct Script<S>(S);

impl Course for Programs {
    type Output = ();
    const IS_SCRIPT: bool = false;

    async fn run(self, _: Control, stage: Arc<Stage>, times: Times) -> Option<()> {
        stage.settled(times.limit, times.quiet, times.linger).await;
        Some(())
    }
}

impl<S, F> Course for Script<S>
where
    S: FnOnce(Control) -> F + Send,
    F: Future,
    F::Output: Send,
{
    type Output = F::Output;
    const IS_SCRIPT: bool = true;

    async fn run(self, control: Control, _: Arc<Stage>, times: Times) -> Option<F::Output> {
        let over = control.clone();
        let (script, over) = (pin!(self.0(control)), pin!(over.sleep_until(times.limit)));
        match select(script, over).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }
}

impl Sim {
    /// Runs the world to its end, on a thread of its own, and judges the history. The builder is empty
    /// afterwards.
    ///
    /// The thread is fresh, since the order of libraries' hash maps is reproducible only there.
    ///
    /// # Errors
    ///
    /// [`RunError`] if the world can't be built as asked, or if code in it panics, leaves the simulation or
    /// does not end. A verdict or a finding is no error.
    pub fn run(&mut self) -> Result<Report, RunError> {
        let (seed, limit, sim) = (self.seed, self.real_limit, self.take());
        sim.validate()?;
        #[cfg(unix)]
        if sim.is_in_own_process && !sim.records_messages {
            return own_process::call(seed, limit, || sim.run_here());
        }
        sim.run_here()
    }

    /// Runs the world on a thread of its own.
    fn run_here(self) -> Result<Report, RunError> {
        let (seed, limit) = (self.seed, self.real_limit);
        let run = move |watched: &Watched| on_this_thread(self, Programs, watched);
        Ok(thread::call(seed, limit, run)??.judged().0)
    }

    /// Runs the world while `script` controls it, on a thread of their own, and judges the history. The run
    /// ends with the script, which can wait for the processes ([`Control::finished`]). Also returns the
    /// script's result. The builder is empty afterwards.
    ///
    /// It is for tests that control a run step by step, where a schedule of faults can't express enough:
    ///
    /// ```
    /// use sim::faults::Pause;
    /// use sim::{Control, Sim};
    /// use std::time::Duration;
    ///
    /// let (report, slept) = Sim::new(7).empty_process("a").run_script(|control: Control| async move {
    ///     let a = control.process("a");
    ///     let pause = control.strike(Pause::of("a"));
    ///     control.after(Duration::from_secs(5), move |_| assert!(pause.heal()));
    ///     // A paused process wakes up late.
    ///     let began = control.now();
    ///     a.sleep(Duration::from_secs(1)).await;
    ///     control.now() - began
    /// })?;
    /// assert_eq!(slept.as_secs(), 5);
    /// assert!(report.trace().contains("resumed"));
    /// # Ok::<(), sim::RunError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Sim::run`], and [`RunError::Unfinished`] if the script has not ended at the [limit](Sim::limit).
    /// If the run exceeds the [limit of real time](Sim::real_limit), the program ends with the error, since
    /// the script may borrow from the caller.
    pub fn run_script<S, F>(&mut self, script: S) -> Result<(Report, F::Output), RunError>
    where
        S: FnOnce(Control) -> F + Send,
        F: Future,
        F::Output: Send,
    {
        let (seed, limit, sim) = (self.seed, self.real_limit, self.take());
        sim.validate()?;
        let run = move |watched: &Watched| on_this_thread(sim, Script(script), watched);
        Ok(thread::call_borrowing(seed, limit, run)??.judged())
    }

    fn take(&mut self) -> Self {
        let seed = self.seed;
        std::mem::replace(self, Self::new(seed))
    }
}

fn on_this_thread<C: Course>(sim: Sim, course: C, watched: &Watched) -> Result<Ran<C::Output>, RunError> {
    let seed = sim.seed;
    let names = Names::new(sim.cast.keys.iter().map(String::as_str));
    panic::watch();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // madsim's own randomness orders the tasks that are ready at the same instant.
        let runtime = madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
        let result = runtime.block_on(in_world(sim, course, &names));
        drop(runtime);
        result
    }));
    let trace = |ran: Option<&Ran<_>>| match ran {
        Some(ran) => ran.report.trace(),
        None => record::finish().map_or_else(String::new, |recorded| text::trace(&recorded.events, &names)),
    };
    // Checked even if the code swallowed the error of the call, or panicked because of it.
    if let Some(escape) = watched.first() {
        let ran = ran.as_ref().ok().and_then(|ran| ran.as_ref().ok());
        return Err(panic::escaped(seed, trace(ran), escape));
    }
    ran.unwrap_or_else(|payload| Err(panic::error(seed, trace(None), &*payload)))
}

async fn in_world<C: Course>(mut sim: Sim, course: C, names: &Names) -> Result<Ran<C::Output>, RunError> {
    let processes: Vec<&str> = sim.cast.names.iter().map(String::as_str).collect();
    let entropy = Entropy::new(sim.seed);
    let entropy =
        sim.rekey.iter().fold(entropy, |entropy, rekey| entropy.rekeyed(rekey.at.as_nanos(), rekey.seed));
    let world = World::new(entropy, &processes, sim.latency);
    if !sim.has_rare_branches {
        world.take_no_rare_branches();
    }
    panic::in_world(&world, C::IS_SCRIPT);
    if !world.is_std_time_of_processes() {
        if cfg!(target_os = "linux") {
            return Err(RunError::StdTime);
        }
        warn_of_std_time();
    }
    for (alias, name) in &sim.aliases {
        if let Some(id) = world.find(name) {
            world.alias(alias, id);
        }
    }
    if sim.records_messages {
        world.capture();
    }
    let may_cancel =
        C::IS_SCRIPT || sim.faults.iter().any(|fault| fault.what.downcast_ref::<Cancel>().is_some());
    let steps = sim.records_steps.then(|| Steps::new(&world, processes.len()));
    let stage = Stage::new(&world, std::mem::take(&mut sim.cast), may_cancel);
    let injector = Injector::new(Arc::clone(&stage) as Arc<dyn faults::FaultTarget>, &sim.faults);
    listen::<C>(&world, &stage, &injector, steps.as_ref());
    injector.start();
    if let Some(core) = sim.core.clone() {
        stage.begin_later(core, &injector);
    }
    stage.start_all();
    let times = Times { limit: sim.limit, quiet: 4 * sim.latency.1, linger: sim.linger };
    let output = course.run(Control::new(&stage, &injector), Arc::clone(&stage), times).await;

    let end = Nanos(world.now());
    let recorded = record::finish().ok_or(RunError::Unrecorded)?;
    // Before the world ends: the connections that its end closes are no steps of the run.
    let steps = steps.map(|steps| steps.take()).unwrap_or_default();
    let exercise = world.take_exercise();
    let (servers, capture) = (stage.served(&exercise), world.take_capture());
    let probes = Probes::new(world.take_hits());
    world.end().await;
    stage.close();
    panic::out_of_world();
    if let Some(mistake) = recorded.mistake {
        return Err(RunError::Vocabulary(mistake));
    }
    let Some(output) = output else {
        let trace = text::trace(&recorded.events, names);
        return Err(RunError::Unfinished { seed: sim.seed, limit: sim.limit, trace });
    };
    let in_flight = in_flight(&sim.faults);
    let arrived = last_arrival(&recorded.events, &in_flight);
    let healed_at = injector.healed_at().map(|at| Nanos(at).max(arrived));
    let report = Report {
        seed: sim.seed,
        findings: failed(&probes, &world),
        verdicts: Vec::new(),
        hash: recorded.hash,
        names: names.clone(),
        servers: sim.rules.servers.clone(),
        events: recorded.events,
        simulated: Duration::from_nanos(end.0),
        commands: servers.iter().map(|server| server.commands).sum(),
        sections: exercise.sections,
        look_ups: exercise.look_ups,
        served: servers,
        struck: injector.struck(),
        steps,
        messages: capture.as_ref().map(messages).unwrap_or_default(),
        capture,
        probes,
    };
    let mut rules = Rules { end, healed_at, in_flight, ..std::mem::take(&mut sim.rules) };
    if let Some(core) = sim.core.as_ref().filter(|core| core.at.as_nanos() <= end.0) {
        core.judge_by(&mut rules, stage.clients_but(core));
    }
    let judgement = Judgement { rules, kinds: sim.verdicts, checks: sim.checks };
    // A check is the user's code, and may use a hash map: it must run on the run's thread. The audit alone is
    // faster on the caller's thread, whose memory is warm from earlier runs.
    Ok(if judgement.checks.is_empty() {
        Ran { report, judgement: Some(judgement), output }
    } else {
        Ran { report: judgement.judge(report), judgement: None, output }
    })
}

/// A run that is over.
struct Ran<T> {
    report: Report,
    /// The judgement that is left to make, if any.
    judgement: Option<Judgement>,
    output: T,
}

impl<T> Ran<T> {
    /// Judges the run, unless that has been done. Returns the script's result, too.
    fn judged(self) -> (Report, T) {
        let Self { report, judgement, output } = self;
        let report = match judgement {
            Some(judgement) => judgement.judge(report),
            None => report,
        };
        (report, output)
    }
}

/// Returns a finding for each `always` that was false.
fn failed(probes: &Probes, world: &World) -> Vec<Finding> {
    let findings = probes.failed().iter().map(|failed| {
        let name = world.process(ProcessId(failed.process)).name();
        let problem = format!("at {} in {name}: {}", Nanos(failed.at), failed.problem);
        Finding { check: failed.name.clone(), problem, forbids: None }
    });
    findings.collect()
}

/// The rules and checks that judge a history.
struct Judgement {
    rules: Rules,
    /// The verdicts that apply; `None` if all do.
    kinds: Option<BTreeSet<VerdictKind>>,
    checks: Vec<(String, Box<dyn Check>)>,
}

impl Judgement {
    /// Adds the verdicts and the findings to the report.
    fn judge(self, mut report: Report) -> Report {
        let (kinds, events) = (self.kinds.as_ref(), &report.events);
        // The audit is left out if no verdict applies.
        let is_audited = kinds.is_none_or(|kinds| !kinds.is_empty());
        let mut verdicts = if is_audited { audit(events, &self.rules) } else { Vec::new() };
        verdicts.retain(|verdict| kinds.is_none_or(|kinds| kinds.contains(&verdict.kind)));
        let evidence = Evidence { events, verdicts: &verdicts, names: &report.names, end: self.rules.end };
        let findings = self.checks.iter().filter_map(|(name, check)| {
            let problem = check.judge(&evidence).err()?;
            Some(Finding { check: name.clone(), problem, forbids: check.forbids() })
        });
        let findings: Vec<Finding> = findings.collect();
        report.findings.extend(findings);
        report.verdicts = verdicts;
        report
    }
}

/// Records the run, and passes its events to the injector, to the tracking of held locks and to `steps`.
fn listen<C: Course>(world: &World, stage: &Arc<Stage>, injector: &Arc<Injector>, steps: Option<&Steps>) {
    let (watching, counting) = (Arc::clone(injector), Arc::clone(stage));
    let recording = steps.cloned();
    let are_aimed = injector.points().next().is_some() || recording.is_some();
    record::start(world, move |event| {
        // Only the end of all programs waits for locks to be free.
        if !C::IS_SCRIPT {
            counting.on_event(event);
        }
        if !are_aimed {
            return;
        }
        if let Some(point) = point::of(&event.kind) {
            if let Some(steps) = &recording {
                steps.pass(event.process.as_str(), point);
            }
            watching.on_point(event.process.as_str(), point);
        }
    });
    forward_points(world, injector, steps);
}

/// Warns once that `std::time` does not read the clocks of a process on this system.
fn warn_of_std_time() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!(
            "sim: on this system `std::time` inside a process reads the simulator's time, and not the clocks \
             of the process: use Process::now and Process::wall; real files, sockets, threads and sleeps in \
             it are not refused"
        );
    });
}

/// Passes the points of servers and of the network to the injector and to `steps`. To save time, does nothing
/// if no fault is aimed at a point and no steps are recorded, as in most runs.
fn forward_points(world: &World, injector: &Arc<Injector>, steps: Option<&Steps>) {
    if injector.points().next().is_none() && steps.is_none() {
        return;
    }
    if injector.points().any(point::is_of_network) || steps.is_some() {
        world.hear_network();
    }
    let (names, injector, steps) = (world.clone(), Arc::clone(injector), steps.cloned());
    world.hear_points(move |process: ProcessId, point: &str| {
        let process = names.process(process).name();
        if let Some(steps) = &steps {
            steps.pass(process, point);
        }
        strike_at(&injector, process, point);
    });
}
