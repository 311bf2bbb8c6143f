//! The workloads of the laboratory, one file each with one row here: what its workers do, on the real lock
//! library and the real HTTP client.

use futures_util::future::BoxFuture;

use super::given::Given;
use super::options::Options;
use super::point::Point;
use super::seat::Seat;
use super::worker::{Worker, WorkerMode};
use crate::place::{Invalid, Place};
use crate::sim::Process;

mod cas;
mod lock;
mod read;

/// All workloads.
const WORKLOADS: &[&dyn Workload] = &[&lock::Locking, &cas::Updating, &read::Reading];

/// A workload of the laboratory: what a worker does in its rounds.
pub(super) trait Workload: Sync {
    /// The name by which the `mode` of a worker asks for it.
    fn name(&self) -> &'static str;

    /// Returns whether its workers acquire the lock.
    fn acquires(&self) -> bool;

    /// Checks the options of a worker at `place`: one that does not apply to the workload is refused.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option.
    fn check(&self, place: &Place, worker: &Worker) -> Result<(), Invalid>;

    /// Returns whether the worker reads the resource without a token.
    fn reads(&self, worker: &Worker) -> bool;

    /// Returns why the worker never passes the point, if it does not.
    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str>;

    /// Works all rounds of a worker.
    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()>;
}

impl WorkerMode {
    /// Returns the names of all workloads.
    pub fn names() -> impl Iterator<Item = &'static str> {
        WORKLOADS.iter().map(|workload| workload.name())
    }

    /// Returns the workload; `None` if the name is unknown.
    pub(super) fn workload(&self) -> Option<&'static dyn Workload> {
        WORKLOADS.iter().copied().find(|workload| workload.name() == self.name())
    }
}

impl Worker {
    /// Returns whether the worker acquires the lock.
    pub(super) fn acquires(&self) -> bool {
        self.mode.workload().is_some_and(Workload::acquires)
    }
}

/// The main task of the worker `number`: waits for its start, then works all its rounds.
pub(super) async fn main(process: Process, options: Options, number: usize, given: Given) {
    let spec = &options.workers[number];
    process.sleep(spec.starts.duration()).await;
    let seat = Seat { process: &process, options: &options, spec, number, given: &given };
    // The schedule was validated: there is a workload of that name.
    if let Some(workload) = spec.mode.workload() {
        workload.rounds(seat).await;
    }
}
