//! Reading, then writing: a worker acquires the lock for reading, reads, and asks for a lease for writing in
//! its place. The library refuses; the worker releases, acquires for writing, and writes.

use futures_util::future::BoxFuture;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::worker::{ReleaseMode, UPGRADE, Worker};
use super::Workload;
use super::lock::Locking;

/// The workload `upgrade`.
pub(super) struct Upgrading;

impl Workload for Upgrading {
    fn name(&self) -> &'static str {
        UPGRADE
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "reads under a lease for reading, and then writes under one for writing"
    }

    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let name = &worker.name;
        if !options.readers {
            let problem = format!("`mode = \"{UPGRADE}\"` of `{name}` needs the schedule's `readers = true`");
            return Err(path.key("mode").says(problem));
        }
        let others = [("shared", worker.shared), ("release", worker.release != ReleaseMode::default())];
        match others.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((field, _)) => {
                let round = self.round();
                let problem = format!("`{field}` does not apply to `mode = \"{UPGRADE}\"`: `{name}` {round}");
                Err(path.key(field).says(problem))
            }
        }
    }

    fn reads(&self, worker: &Worker) -> bool {
        Locking.reads(worker)
    }

    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str> {
        // It reads under its lease for reading in any case.
        Locking.never_passes(worker, point).filter(|_| point != Point::Read)
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}
