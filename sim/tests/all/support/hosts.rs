//! Starts and kills simulated servers by hand, as a run does.

use std::sync::{Arc, Mutex};

use sim::servers::host::Host;
use sim::world::World;
use sim::world::machine::WorldMachine;
use sim::world::process::ProcessId;

/// Starts the server in its process, which must be in its first life.
pub fn start(world: &World, process: ProcessId, host: &impl Host) {
    world.spawn(process, host.start(WorldMachine::new(world, process)));
}

/// Kills the process, without a loss of power.
pub fn crash(world: &World, process: ProcessId, host: &impl Host) {
    host.died();
    world.crash(process, false);
}

/// Starts the server of a dead process again.
pub fn restart(world: &World, process: ProcessId, host: &impl Host) {
    world.restart(process, host.start(WorldMachine::new(world, process)));
}

/// The points that processes pass from now on, with the names of the processes.
pub fn points(world: &World) -> Arc<Mutex<Vec<(String, String)>>> {
    let points = Arc::new(Mutex::new(Vec::new()));
    let (heard, names) = (Arc::clone(&points), world.clone());
    world.hear_points(move |process: ProcessId, point: &str| {
        heard.lock().unwrap().push((names.process(process).name().to_owned(), point.to_owned()));
    });
    points
}
