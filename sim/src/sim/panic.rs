//! Panics inside a run: the process whose code panicked, and the place in its code.

use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use super::error::RunError;
use crate::world::World;
use crate::world::escape::Escape;
use crate::world::stall::Stall;

/// Parts of tokio's messages when a call needs a runtime and there is none.
const NO_TOKIO: [&str; 2] = ["there is no reactor running", "must be called from the context of a Tokio"];

/// The name in errors for code that no process runs.
const THE_SIMULATOR: &str = "the simulator";

thread_local! {
    /// The world of the run on this thread, and its first panic.
    static RUN: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

struct Watch {
    world: Option<World>,
    /// The name in errors for code that runs outside all processes.
    outside: &'static str,
    first: Option<Panic>,
}

struct Panic {
    process: String,
    location: String,
    message: String,
}

/// Keeps the first panic of the run on this thread, instead of printing panics.
pub(super) fn watch() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !keep(info) {
                before(info);
            }
        }));
    });
    RUN.set(Some(Watch { world: None, outside: THE_SIMULATOR, first: None }));
}

/// Sets the world of the run on this thread. Code outside all processes belongs to the script, or to the
/// simulator if the run has no script.
pub(super) fn in_world(world: &World, has_script: bool) {
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            run.world = Some(world.clone());
            run.outside = if has_script { "the script" } else { THE_SIMULATOR };
        }
    });
}

/// Drops the world, which this thread would otherwise keep alive.
pub(super) fn out_of_world() {
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            run.world = None;
            run.outside = THE_SIMULATOR;
        }
    });
}

/// Returns the error for the first panic of the run on this thread; `trace` is the run's.
pub(super) fn error(seed: u64, trace: String, payload: &(dyn std::any::Any + Send)) -> RunError {
    if let Some(stall) = payload.downcast_ref::<Stall>() {
        let process = stall.process.clone().map_or(THE_SIMULATOR.to_owned(), of_process);
        let (location, turns) = (place(stall.location.clone()), stall.turns);
        return RunError::Stalled { seed, process, location, turns, trace };
    }
    let first = RUN.with_borrow_mut(|run| run.as_mut().and_then(|run| run.first.take()));
    let Panic { process, location, message } = first.unwrap_or_else(|| Panic {
        process: THE_SIMULATOR.to_owned(),
        location: place(None::<String>),
        message: text(payload),
    });
    if NO_TOKIO.iter().any(|words| message.contains(words)) {
        return RunError::ForeignRuntime { seed, process, location, trace };
    }
    RunError::Panicked { seed, process, location, message, trace }
}

/// Returns the error for a call that would have left the simulation.
pub(super) fn escaped(seed: u64, trace: String, escape: Escape) -> RunError {
    let Escape { process, location, call, outside } = escape;
    let process = process.map_or("the script".to_owned(), of_process);
    let location = place(location);
    RunError::Escaped { seed, process, location, call, outside, trace }
}

/// Keeps the first panic of a run; returns false if this thread belongs to no run.
fn keep(info: &PanicHookInfo<'_>) -> bool {
    RUN.with(|run| {
        let Ok(mut run) = run.try_borrow_mut() else { return false };
        let Some(run) = run.as_mut() else { return false };
        if run.first.is_none() {
            let world = run.world.as_ref();
            let speaker = world.and_then(|world| Some((world, world.speaker().ok()??)));
            let process =
                speaker.map_or(run.outside.to_owned(), |(world, id)| of_process(world.process(id).name()));
            let location = place(info.location());
            run.first = Some(Panic { process, location, message: text(info.payload()) });
        }
        true
    })
}

fn text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

/// Returns the name of the process for errors.
pub(super) fn of_process(name: impl Display) -> String {
    format!("process `{name}`")
}

/// Returns the file and line for errors, which may be unknown.
pub(super) fn place(location: Option<impl Display>) -> String {
    location.map_or("an unknown place".to_owned(), |location| location.to_string())
}
