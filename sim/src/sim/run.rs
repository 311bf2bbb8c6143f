//! One run: builds the world, lets its processes run while faults strike, and judges what happened.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use resource::audit::{Nanos, Rules, audit};

use super::builder::Sim;
use super::check::{Evidence, Finding};
use super::error::RunError;
use super::panic;
use super::point;
use super::report::Report;
use super::stage::Stage;
use crate::entropy::Entropy;
use crate::faults::{self, Cancel, Injector};
use crate::record;
use crate::trace::text::{self, Names};
use crate::world::World;
use crate::world::process::ProcessId;

impl Sim {
    /// Runs the world to its end, on a thread of its own, and judges what happened. The builder is empty afterwards.
    ///
    /// # Errors
    ///
    /// [`RunError`] if the world can't be built as asked, or if code in it panics. A verdict or a finding is no error.
    pub fn run(&mut self) -> Result<Report, RunError> {
        let seed = self.seed;
        run(std::mem::replace(self, Self::new(seed)))
    }
}

/// Runs `sim` on a fresh thread: the order of libraries' hash maps is only reproducible in one.
fn run(sim: Sim) -> Result<Report, RunError> {
    sim.validate()?;
    #[allow(
        clippy::disallowed_methods,
        reason = "each run gets a fresh thread; nothing in it sees another's"
    )]
    let thread = std::thread::Builder::new().name("run".to_owned()).spawn(move || on_this_thread(sim))?;
    // A panic is caught on the thread itself.
    thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

fn on_this_thread(sim: Sim) -> Result<Report, RunError> {
    let seed = sim.seed;
    let names = Names::new(sim.cast.keys.iter().map(String::as_str));
    panic::watch();
    catch_unwind(AssertUnwindSafe(|| {
        // madsim's own randomness orders the tasks that are ready at the same instant.
        let runtime = madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
        let result = runtime.block_on(in_world(sim));
        drop(runtime);
        result
    }))
    .unwrap_or_else(|payload| {
        let trace = record::finish().map(|recorded| text::trace(&recorded.events, &names));
        Err(panic::error(seed, trace.unwrap_or_default(), &*payload))
    })
}

async fn in_world(mut sim: Sim) -> Result<Report, RunError> {
    let names: Vec<&str> = sim.cast.names.iter().map(String::as_str).collect();
    let world = World::new(Entropy::new(sim.seed), &names, sim.latency);
    panic::in_world(&world);
    for (alias, name) in &sim.aliases {
        if let Some(id) = world.find(name) {
            world.alias(alias, id);
        }
    }
    let may_cancel = sim.faults.iter().any(|fault| fault.what.downcast_ref::<Cancel>().is_some());
    let stage = Stage::new(&world, std::mem::take(&mut sim.cast), may_cancel);
    let injector = Injector::new(Arc::clone(&stage) as Arc<dyn faults::Stage>, &sim.faults);
    let (watching, counting) = (Arc::clone(&injector), Arc::clone(&stage));
    record::start(&world, move |event| {
        counting.on_event(event);
        if let Some(point) = point::of(&event.kind) {
            watching.on_point(event.process.as_str(), point);
        }
    });
    hear_points(&world, &injector);
    injector.start();
    stage.start_all();
    stage.settled(sim.limit, 4 * sim.latency.1, sim.linger).await;

    let end = Nanos(world.now());
    let recorded = record::finish().ok_or(RunError::Unrecorded)?;
    let commands = stage.executed();
    world.end().await;
    stage.close();
    panic::out_of_world();
    if let Some(mistake) = recorded.mistake {
        return Err(RunError::Vocabulary(mistake));
    }
    let rules = Rules { end, healed_at: injector.healed_at().map(Nanos), ..sim.rules };
    let mut verdicts = audit(&recorded.events, &rules);
    verdicts.retain(|verdict| sim.verdicts.contains(&verdict.kind));
    let names = Names::new(stage.cast.keys.iter().map(String::as_str));
    let evidence = Evidence { events: &recorded.events, verdicts: &verdicts, names: &names, end };
    let findings = sim.checks.iter().filter_map(|(name, check)| {
        let problem = check.judge(&evidence).err()?;
        Some(Finding { check: name.clone(), problem })
    });
    Ok(Report {
        seed: sim.seed,
        findings: findings.collect(),
        verdicts,
        hash: recorded.hash,
        names,
        events: recorded.events,
        simulated: Duration::from_nanos(end.0),
        commands,
        struck: injector.struck(),
    })
}

/// Tells the faults of the points that servers and the network pass. Most schedules aim at none: they pay for none.
fn hear_points(world: &World, injector: &Arc<Injector>) {
    if injector.points().next().is_none() {
        return;
    }
    if injector.points().any(point::is_of_network) {
        world.hear_network();
    }
    let (names, injector) = (world.clone(), Arc::clone(injector));
    world.hear_points(move |process: ProcessId, point: &str| {
        // Redis takes its commands in any case.
        if let Some(aimed) = injector.points().find(|aimed| aimed.eq_ignore_ascii_case(point)) {
            injector.on_point(names.process(process).name(), aimed);
        }
    });
}
