//! One run: builds the world, lets its processes run while faults strike, and judges what happened.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::future::{Either, select};
use resource::audit::{Event, Nanos, Rules, Verdict, audit};

use super::builder::Sim;
use super::check::{Evidence, Finding};
use super::control::Control;
use super::error::RunError;
use super::panic;
use super::point;
use super::report::Report;
use super::stage::Stage;
use crate::entropy::Entropy;
use crate::faults::{self, Cancel, Fault, Injector};
use crate::probes::Probes;
use crate::record;
use crate::trace::text::{self, Names};
use crate::world::World;
use crate::world::process::ProcessId;

/// What a run is: it ends with this.
trait Course: Send {
    /// What it comes to.
    type Output: Send;

    /// Whether it is code of whoever built the world.
    const IS_SCRIPT: bool;

    /// Completes when the run is over. Returns `None` if that is so because time is up.
    fn run(
        self,
        control: Control,
        stage: Arc<Stage>,
        times: Times,
    ) -> impl Future<Output = Option<Self::Output>>;
}

/// How long a run may take.
#[derive(Clone, Copy)]
struct Times {
    limit: Duration,
    /// How long something may be under way.
    quiet: Duration,
    linger: Duration,
}

/// The run of all programs to their end.
struct Programs;

/// The run of a script.
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
    /// Runs the world to its end, on a thread of its own, and judges what happened. The builder is empty
    /// afterwards.
    ///
    /// # Errors
    ///
    /// [`RunError`] if the world can't be built as asked, or if code in it panics. A verdict or a finding
    /// is no error.
    pub fn run(&mut self) -> Result<Report, RunError> {
        run(self.take(), Programs).map(|(report, ())| report)
    }

    /// Runs the world while `script` controls it, on a thread of their own, and judges what happened. The
    /// run ends with the script: it can wait for the processes ([`Control::finished`]). Returns what the
    /// script came to, too. The builder is empty afterwards.
    ///
    /// This is for tests that say step by step what happens, where a schedule of faults would say too little:
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
    pub fn run_script<S, F>(&mut self, script: S) -> Result<(Report, F::Output), RunError>
    where
        S: FnOnce(Control) -> F + Send,
        F: Future,
        F::Output: Send,
    {
        run(self.take(), Script(script))
    }

    fn take(&mut self) -> Self {
        let seed = self.seed;
        std::mem::replace(self, Self::new(seed))
    }
}

/// Runs `sim` on a fresh thread: the order of libraries' hash maps is only reproducible in one.
fn run<C: Course>(sim: Sim, course: C) -> Result<(Report, C::Output), RunError> {
    sim.validate()?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("run".to_owned());
        // A panic is caught on the thread itself.
        let run = thread.spawn_scoped(scope, move || on_this_thread(sim, course))?;
        run.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

fn on_this_thread<C: Course>(sim: Sim, course: C) -> Result<(Report, C::Output), RunError> {
    let seed = sim.seed;
    let names = Names::new(sim.cast.keys.iter().map(String::as_str));
    panic::watch();
    catch_unwind(AssertUnwindSafe(|| {
        // madsim's own randomness orders the tasks that are ready at the same instant.
        let runtime = madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
        let result = runtime.block_on(in_world(sim, course));
        drop(runtime);
        result
    }))
    .unwrap_or_else(|payload| {
        let trace = record::finish().map(|recorded| text::trace(&recorded.events, &names));
        Err(panic::error(seed, trace.unwrap_or_default(), &*payload))
    })
}

async fn in_world<C: Course>(mut sim: Sim, course: C) -> Result<(Report, C::Output), RunError> {
    let names: Vec<&str> = sim.cast.names.iter().map(String::as_str).collect();
    let world = World::new(Entropy::new(sim.seed), &names, sim.latency);
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
    let may_cancel =
        C::IS_SCRIPT || sim.faults.iter().any(|fault| fault.what.downcast_ref::<Cancel>().is_some());
    let stage = Stage::new(&world, std::mem::take(&mut sim.cast), may_cancel);
    let injector = Injector::new(Arc::clone(&stage) as Arc<dyn faults::Stage>, &sim.faults);
    listen::<C>(&world, &stage, &injector);
    injector.start();
    stage.start_all();
    let times = Times { limit: sim.limit, quiet: 4 * sim.latency.1, linger: sim.linger };
    let output = course.run(Control::new(&stage, &injector), Arc::clone(&stage), times).await;

    let end = Nanos(world.now());
    let recorded = record::finish().ok_or(RunError::Unrecorded)?;
    let commands = stage.executed();
    let probes = Probes::new(world.take_hits());
    world.end().await;
    stage.close();
    panic::out_of_world();
    if let Some(mistake) = recorded.mistake {
        return Err(RunError::Vocabulary(mistake));
    }
    let names = Names::new(stage.cast.keys.iter().map(String::as_str));
    let Some(output) = output else {
        let trace = text::trace(&recorded.events, &names);
        return Err(RunError::Unfinished { seed: sim.seed, limit: sim.limit, trace });
    };
    let in_flight = in_flight(&sim.faults);
    let healed_at = injector.healed_at().map(Nanos);
    let rules = Rules { end, healed_at, in_flight, ..std::mem::take(&mut sim.rules) };
    let (verdicts, mut findings) = judge(&sim, &recorded.events, &names, &rules);
    findings.extend(failed(&probes, &world));
    let report = Report {
        seed: sim.seed,
        findings,
        verdicts,
        hash: recorded.hash,
        names,
        events: recorded.events,
        simulated: Duration::from_nanos(end.0),
        commands,
        struck: injector.struck(),
        probes,
    };
    Ok((report, output))
}

/// What the audit and the checks find.
fn judge(sim: &Sim, events: &[Event], names: &Names, rules: &Rules) -> (Vec<Verdict>, Vec<Finding>) {
    // No audit where none of its verdicts applies.
    let mut verdicts = if sim.verdicts.is_empty() { Vec::new() } else { audit(events, rules) };
    verdicts.retain(|verdict| sim.verdicts.contains(&verdict.kind));
    let evidence = Evidence { events, verdicts: &verdicts, names, end: rules.end };
    let findings = sim.checks.iter().filter_map(|(name, check)| {
        let problem = check.judge(&evidence).err()?;
        Some(Finding { check: name.clone(), problem })
    });
    let findings = findings.collect();
    (verdicts, findings)
}

/// The findings for the probes that must always be true and were not.
fn failed(probes: &Probes, world: &World) -> impl Iterator<Item = Finding> {
    probes.failed().iter().map(|failed| {
        let name = world.process(ProcessId(failed.process)).name();
        let problem = format!("at {} in {name}: {}", Nanos(failed.at), failed.problem);
        Finding { check: failed.name.clone(), problem }
    })
}

/// Records the run, and tells the faults and the end of the run what they wait for.
fn listen<C: Course>(world: &World, stage: &Arc<Stage>, injector: &Arc<Injector>) {
    let (watching, counting) = (Arc::clone(injector), Arc::clone(stage));
    let are_aimed = injector.points().next().is_some();
    record::start(world, move |event| {
        // Only the end of all programs waits for locks to be free.
        if !C::IS_SCRIPT {
            counting.on_event(event);
        }
        if !are_aimed {
            return;
        }
        if let Some(point) = point::of(&event.kind) {
            watching.on_point(event.process.as_str(), point);
        }
    });
    hear_points(world, injector);
}

/// Says once that `std::time` reads no process's clocks on this system.
fn warn_of_std_time() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!(
            "sim: on this system `std::time` inside a process reads the simulator's time, and not the clocks of the process: \
             use Process::now and Process::wall"
        );
    });
}

/// How long each fault's messages may be late after its end, by the number of the fault.
fn in_flight(faults: &[Fault]) -> BTreeMap<u64, Duration> {
    let late = (0..).zip(faults).map(|(number, fault)| (number, fault.what.in_flight().duration()));
    late.filter(|(_, late)| !late.is_zero()).collect()
}

/// Tells the faults of the points that servers and the network pass. Most schedules aim at none: they pay
/// for none.
fn hear_points(world: &World, injector: &Arc<Injector>) {
    if injector.points().next().is_none() {
        return;
    }
    if injector.points().any(point::is_of_network) {
        world.hear_network();
    }
    let (names, injector) = (world.clone(), Arc::clone(injector));
    world.hear_points(move |process: ProcessId, point: &str| {
        injector.on_server_point(names.process(process).name(), point);
    });
}
