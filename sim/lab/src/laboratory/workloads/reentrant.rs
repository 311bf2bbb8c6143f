//! A reentrant lock: a worker acquires its key again inside its critical section, in the scope of the round,
//! and writes in each section before and after the one inside it.

use std::ops::RangeInclusive;

use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::wider::Wider;
use super::super::worker::{REENTRANT, ReleaseMode, Worker, WorkerMode};
use super::Workload;
use super::lock::Locking;

/// The workload `reentrant`.
pub(super) struct Nesting;

/// The numbers of sections: a single one nests nothing.
const DEPTHS: RangeInclusive<u32> = 2..=9;

impl Workload for Nesting {
    fn name(&self) -> &'static str {
        REENTRANT
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "enters nested sections, each of which writes and leaves"
    }

    fn check(&self, path: &FieldPath, worker: &Worker, _: &Options) -> Result<(), Invalid> {
        let (name, depth) = (&worker.name, worker.nests().unwrap_or_default());
        if !DEPTHS.contains(&depth) {
            let problem =
                format!("`depth` = {depth} of `{name}`: give {} to {}", DEPTHS.start(), DEPTHS.end());
            return Err(path.key("depth").says(problem));
        }
        let others = [("writes", worker.writes != 1), ("release", worker.release != ReleaseMode::default())];
        match others.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((field, _)) => {
                let round = self.round();
                let problem =
                    format!("`{field}` does not apply to `mode = \"{REENTRANT}\"`: `{name}` {round}");
                Err(path.key(field).says(problem))
            }
        }
    }

    fn reads(&self, worker: &Worker) -> bool {
        Locking.reads(worker)
    }

    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str> {
        Locking.never_passes(worker, point)
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("reentrant", 0.04, reentrant)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}

/// Makes workers nest two or three sections.
fn reentrant(options: &mut Options, site: &mut Site) {
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        let depth = Some(3).filter(|_| site.chance(0.3));
        (worker.mode, worker.depth) = (WorkerMode::new(REENTRANT), depth);
        (worker.writes, worker.release) = (1, ReleaseMode::default());
    }
}
