//! What a simulated lock server meets in a run: its machine's clock and disk, those who watch it, and the primary it follows.

use std::sync::Weak;
use std::time::Duration;

use ::redb::StorageBackend;

use super::inject::on_command;
use crate::faults::Injector;
use crate::servers::redis::{self, Effect, LockView, Observer, Server, ServerWorld};
use crate::servers::zookeeper;
use crate::world::World;
use crate::world::disk::File;
use crate::world::process::ProcessId;
use crate::world::runtime::SimRuntime;

/// What a simulated server needs of its machine.
pub(super) struct Machinery {
    pub(super) world: World,
    pub(super) process: ProcessId,
}

impl ServerWorld for Machinery {
    fn wall_micros(&self) -> u64 {
        self.world.process(self.process).clock().wall(self.world.now()) / 1000
    }

    async fn sleep(&self, duration: Duration) {
        let runtime = SimRuntime::new(&self.world, self.process);
        dlock::Runtime::sleep_until(&runtime, dlock::Runtime::now(&runtime) + duration).await;
    }
}

impl zookeeper::ServerWorld for Machinery {
    fn monotonic_nanos(&self) -> u64 {
        dlock::Runtime::now(&SimRuntime::new(&self.world, self.process)).as_nanos()
    }

    fn wall_millis(&self) -> u64 {
        ServerWorld::wall_micros(self) / 1000
    }

    async fn sleep(&self, duration: Duration) {
        ServerWorld::sleep(self, duration).await;
    }

    fn reaches(&self, name: &str) -> bool {
        let Some(other) = self.world.find(name) else { return false };
        let process = self.world.process(other);
        let is_running = process.is_alive() && !process.is_paused();
        is_running && self.world.is_open(self.process, other) && self.world.is_open(other, self.process)
    }
}

/// Tells the history what a server does to locks, and the faults which commands it executes.
pub(super) struct Watch {
    pub(super) locks: LockView,
    pub(super) server: String,
    pub(super) injector: Weak<Injector>,
}

impl Observer for Watch {
    fn changed(&self, client: &str, wall_ms: i64, effects: &[Effect]) {
        self.locks.changed(client, wall_ms, effects);
    }

    fn executed(&self, _: &str, command: &'static str) {
        if let Some(injector) = self.injector.upgrade() {
            on_command(&injector, &self.server, command);
        }
    }
}

/// Follows the primary, anew whenever the connection breaks.
pub(super) async fn replicate(world: World, id: ProcessId, replica: Server<Machinery>) {
    let runtime = SimRuntime::new(&world, id);
    while replica.is_replica() {
        if let Ok(stream) = dlock::Runtime::connect(&runtime, "redis-1:6379").await {
            // A broken connection is followed by the next.
            let _ = replica.follow(stream).await;
        }
        let retry = dlock::Runtime::now(&runtime) + Duration::from_millis(100);
        dlock::Runtime::sleep_until(&runtime, retry).await;
    }
}

impl redis::AppendFile for File {
    fn append(&self, bytes: &[u8]) {
        // A dead process writes no more.
        let _ = File::append(self, bytes);
    }

    fn sync(&self) {
        let _ = File::sync(self);
    }

    fn contents(&self) -> Vec<u8> {
        File::contents(self).unwrap_or_default()
    }

    fn truncate(&self, bytes: usize) {
        let _ = StorageBackend::set_len(self, bytes as u64);
    }
}
