//! The observer of an election: it learns who leads, and neither campaigns nor writes.

use futures_util::future::BoxFuture;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::worker::{OBSERVE, Worker};
use super::Workload;
use super::election::check_one_leader;

/// The workload `observe`.
pub(super) struct Observing;

impl Workload for Observing {
    fn name(&self) -> &'static str {
        OBSERVE
    }

    fn acquires(&self) -> bool {
        false
    }

    fn round(&self) -> &'static str {
        "waits for a new term until its `deadline`, and takes no lock"
    }

    fn check(&self, path: &FieldPath, _: &Worker, options: &Options) -> Result<(), Invalid> {
        check_one_leader(path, options)
    }

    fn reads(&self, _: &Worker) -> bool {
        false
    }

    fn never_passes(&self, _: &Worker, _: Point) -> Option<&'static str> {
        Some("its `mode` is observe, it takes no lock")
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}
