//! The marks of code under test (`sim::section`, `sim::point`, …), which find their process by themselves.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use dlock_runtime::ProbeKind;
use sim_host::{Host, Section};

use super::{section, single};
use crate::world::World;
use crate::world::current;
use crate::world::guest;
use crate::world::process::ProcessId;

/// The simulator, as marks see it.
struct Marks;

/// Makes marks find the processes of this program's worlds. It is called when the program starts: then code
/// under `#[tokio::test]` finds the simulator before the first run.
#[ctor::ctor(unsafe)]
fn register() {
    sim_host::register(&Marks);
}

/// Returns the process whose task is polled on this thread.
fn process() -> Option<(World, ProcessId)> {
    current::process().map(|(world, number)| (world, ProcessId(number)))
}

impl Host for Marks {
    fn is_in_process(&self) -> bool {
        current::is_in_process()
    }

    fn point(&self, name: &str) {
        if self.is_in_process() {
            tracing::info!(target: "worker", event = "point_passed", step = name);
        }
    }

    fn enter(&self, lock: &str, token: u64) -> Option<Section> {
        process().map(|(world, id)| section::enter(&world, id, lock, token))
    }

    fn probe(&self, kind: sim_host::ProbeKind, name: &str, seen: u64, place: &'static Location<'static>) {
        let kind = match kind {
            sim_host::ProbeKind::Sometimes => ProbeKind::Sometimes,
            sim_host::ProbeKind::Always => ProbeKind::Always,
            sim_host::ProbeKind::Reached => ProbeKind::Reached,
            sim_host::ProbeKind::Closest => ProbeKind::Closest,
        };
        if let Some((world, id)) = process() {
            world.own_probe(id, kind, name, place, seen);
        }
    }

    fn buggify(&self, chance: f64, place: &'static Location<'static>) -> bool {
        let is_taken = process().is_some_and(|(world, id)| world.takes_rare_branch(id, chance, place));
        if is_taken {
            let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
            self.point(&format!("buggify {file}:{}", place.line()));
        }
        is_taken
    }

    fn process(&self) -> Option<Arc<dyn sim_host::Process>> {
        guest::current()
    }

    fn run(&self, main: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<(), String> {
        single::run(main)
    }
}
