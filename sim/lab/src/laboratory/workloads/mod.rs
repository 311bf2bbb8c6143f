//! The workloads of the laboratory's workers, one file each with one row here. They use the real lock library
//! and the real HTTP client.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use resource::Fencing;
use sim::{FieldPath, Invalid, Process};

use super::given::Given;
use super::options::Options;
use super::point::Point;
use super::seat::Seat;
use super::wider::Wider;
use super::worker::{ReadMode, Worker, WorkerMode};

mod cas;
mod cron;
mod election;
mod jobs;
mod lock;
mod observe;
mod read;
mod reentrant;
mod several;
mod single_flight;
mod upgrade;

/// All workloads.
const WORKLOADS: &[&dyn Workload] = &[
    &lock::Locking,
    &cas::Updating,
    &read::Reading,
    &several::Several,
    &election::Campaigning,
    &observe::Observing,
    &reentrant::Nesting,
    &upgrade::Upgrading,
    &single_flight::Flying,
    &cron::Firing,
    &jobs::Working,
];

/// A workload: the rounds of a worker.
pub(super) trait Workload: Sync {
    /// Returns its name, as in the `mode` of a worker.
    fn name(&self) -> &'static str;

    /// Returns true if its workers acquire the lock.
    fn acquires(&self) -> bool;

    /// Returns the round of a worker in words, as they follow its name: the reason why an option of other
    /// workloads does not apply.
    fn round(&self) -> &'static str;

    /// Checks the workload's own options of a worker at `path`; those of other workloads are refused anyway.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option.
    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let _ = (path, worker, options);
        Ok(())
    }

    /// Returns true if the worker reads the resource without a token.
    fn reads(&self, worker: &Worker) -> bool;

    /// Returns true if the worker claims the resource with its token.
    fn claims(&self, worker: &Worker) -> bool {
        worker.read == ReadMode::Fenced
    }

    /// Returns the reason why the worker never passes the point; `None` if it may pass it.
    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str>;

    /// Returns the changes by which searches draw the workload beside the lock.
    fn wider(&self) -> &'static [Wider] {
        &[]
    }

    /// Works all rounds of a worker.
    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()>;
}

impl WorkerMode {
    /// Returns the names of all workloads.
    pub fn names() -> impl Iterator<Item = &'static str> {
        WORKLOADS.iter().map(|workload| workload.name())
    }

    /// Returns the changes by which searches draw workloads.
    pub(super) fn wider() -> impl Iterator<Item = &'static Wider> {
        WORKLOADS.iter().flat_map(|workload| workload.wider())
    }

    /// Returns the workload; `None` if the name is unknown.
    pub(super) fn workload(&self) -> Option<&'static dyn Workload> {
        WORKLOADS.iter().copied().find(|workload| workload.name() == self.name())
    }
}

impl Worker {
    /// Returns true if the worker acquires the lock.
    pub(super) fn acquires(&self) -> bool {
        self.mode.workload().is_some_and(Workload::acquires)
    }
}

/// Runs the worker `number`: waits for its start, then works all its rounds.
pub(super) async fn main(
    process: Process,
    options: Arc<Options>,
    number: usize,
    given: Given,
    fencing: Fencing,
) {
    let spec = &options.workers[number];
    process.sleep(spec.starts.duration()).await;
    let seat = Seat { process: &process, options: &options, spec, number, given: &given, fencing };
    // The schedule was validated, so there is a workload of that name.
    if let Some(workload) = spec.mode.workload() {
        workload.rounds(seat).await;
    }
}
