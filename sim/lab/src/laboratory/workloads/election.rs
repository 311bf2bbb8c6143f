//! Leader election: a worker campaigns, works and writes as the leader, and resigns.

use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::wider::Wider;
use super::super::worker::{ELECTION, OBSERVE, ReleaseMode, Worker, WorkerMode};
use super::Workload;
use super::lock::Locking;

/// The workload `election`.
pub(super) struct Campaigning;

impl Workload for Campaigning {
    fn name(&self) -> &'static str {
        ELECTION
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "campaigns until its `deadline`, and leads"
    }

    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let name = &worker.name;
        let of_one = |field: &'static str, why: &str| {
            Err(path.key(field).says(format!("`{field}` does not apply to `mode = \"{ELECTION}\"`: {why}")))
        };
        if worker.renew {
            return of_one("renew", &format!("`{name}` renews its lease as long as it leads"));
        }
        if worker.release != ReleaseMode::Script {
            return of_one("release", &format!("`{name}` resigns"));
        }
        check_one_leader(path, options)
    }

    fn reads(&self, worker: &Worker) -> bool {
        Locking.reads(worker)
    }

    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str> {
        // A leader renews.
        Locking.never_passes(&Worker { renew: true, ..worker.clone() }, point)
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("elections", 0.05, elections)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}

/// Refuses an election of several leaders.
pub(super) fn check_one_leader(path: &FieldPath, options: &Options) -> Result<(), Invalid> {
    match options.permits {
        Some(permits) => {
            let problem = format!("`permits` = {permits}: an election has one leader at a time");
            Err(path.key("mode").says(problem))
        }
        None => Ok(()),
    }
}

/// Makes workers candidates; the last one observes if there are three at least.
fn elections(options: &mut Options, _: &mut Site) {
    let locks = |worker: &&mut Worker| worker.mode == WorkerMode::default();
    for worker in options.workers.iter_mut().filter(locks) {
        worker.mode = WorkerMode::new(ELECTION);
        (worker.renew, worker.renew_cap, worker.release) = (false, None, ReleaseMode::default());
    }
    let count = options.workers.len();
    if let Some(last) = options.workers.last_mut().filter(|_| count > 2) {
        let Worker { name, rounds, key, deadline, .. } = last.clone();
        let (mode, rounds) = (WorkerMode::new(OBSERVE), rounds + 2);
        *last = Worker { name, mode, rounds, key, deadline, ..Worker::default() };
    }
}
