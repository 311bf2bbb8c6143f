//! The metrics of a runtime. A simulated process has one worker, which takes no time and has no queue of its
//! own: the simulator draws the order of all tasks of the world.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sim_host::Process;

use crate::alive;

/// The metrics of a simulated process. All but [`RuntimeMetrics::num_alive_tasks`] are constant.
#[derive(Clone)]
pub struct RuntimeMetrics {
    process: Arc<dyn Process>,
}

impl RuntimeMetrics {
    pub(super) fn new(process: Arc<dyn Process>) -> Self {
        Self { process }
    }

    /// Returns 1: a world has one thread.
    pub fn num_workers(&self) -> usize {
        1
    }

    /// Returns the number of tasks that the process has spawned and that have not ended. As with tokio, it
    /// leaves out code that blocks and the tasks of a `LocalSet`; it also leaves out those of
    /// `LocalRuntime::spawn_local`.
    pub fn num_alive_tasks(&self) -> usize {
        alive::count(&self.process.name())
    }

    /// Returns 0: the tasks that are ready wait in the simulator, not in the process.
    pub fn global_queue_depth(&self) -> usize {
        0
    }

    /// Returns zero: a simulated task takes no time between two awaits.
    ///
    /// # Panics
    ///
    /// If `worker` is not 0, as tokio's own if there is no such worker.
    #[track_caller]
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        check(worker);
        Duration::ZERO
    }

    /// Returns 0: a simulated worker does not park.
    ///
    /// # Panics
    ///
    /// If `worker` is not 0, as tokio's own if there is no such worker.
    #[track_caller]
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        check(worker);
        0
    }

    /// Returns 0: a simulated worker does not park.
    ///
    /// # Panics
    ///
    /// If `worker` is not 0, as tokio's own if there is no such worker.
    #[track_caller]
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        check(worker);
        0
    }
}

#[track_caller]
fn check(worker: usize) {
    assert!(worker == 0, "there is no worker {worker}: a simulated runtime has one, with the number 0");
}

impl fmt::Debug for RuntimeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeMetrics").field("process", &self.process.name()).finish()
    }
}

/// Returns 0, the number of the only worker; `None` in code that blocks outside of `block_on`, and outside of
/// a simulated process.
pub fn worker_index() -> Option<usize> {
    let process = sim_host::process()?;
    // Only code that blocks can wait.
    let can_wait = process.block_on(&mut |_| Poll::Ready(())).is_ok();
    (!can_wait).then_some(0)
}
