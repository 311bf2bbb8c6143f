//! The lock: a worker acquires, reads, works, checks its lease, writes to the resource and releases.

use futures_util::future::BoxFuture;

use super::super::point::Point;
use super::super::seat::Seat;
use super::super::worker::{ReadMode, ReleaseMode, Worker};
use super::Workload;

/// The workload `lock`.
pub(super) struct Locking;

impl Workload for Locking {
    fn name(&self) -> &'static str {
        "lock"
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "waits for the lock until its `deadline`"
    }

    fn reads(&self, worker: &Worker) -> bool {
        worker.read == ReadMode::Plain
    }

    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str> {
        match point {
            Point::Read if worker.read == ReadMode::None => Some("its `read` is none"),
            Point::Checked if !worker.check => Some("its `check` is false"),
            Point::Renewed | Point::Lost if !worker.renew => Some("its `renew` is false"),
            Point::ReleaseRequested | Point::Released if worker.release == ReleaseMode::None => {
                Some("its `release` is none")
            }
            _ => None,
        }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}
