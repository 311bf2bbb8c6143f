//! Single-flight: a worker gets a result that is newer than the one it knows, from another worker or by
//! computing it under the lock.

use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::wider::Wider;
use super::super::worker::{ReadMode, ReleaseMode, SINGLE_FLIGHT, Worker, WorkerMode};
use super::Workload;

/// The workload `single_flight`.
pub(super) struct Flying;

impl Workload for Flying {
    fn name(&self) -> &'static str {
        SINGLE_FLIGHT
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "gets one result a round, from another worker or by computing it"
    }

    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let plain = Worker::default();
        let others = [
            ("check", worker.check != plain.check),
            ("read", worker.read != plain.read),
            ("renew", worker.renew != plain.renew),
            ("release", worker.release != plain.release),
            ("writes", worker.writes != plain.writes),
            ("retry_put", worker.retry_put != plain.retry_put),
            ("cancel_at", worker.cancel_at != plain.cancel_at),
        ];
        let (name, round) = (&worker.name, self.round());
        if let Some((field, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
            let problem =
                format!("`{field}` does not apply to `mode = \"{SINGLE_FLIGHT}\"`: `{name}` {round}");
            return Err(path.key(field).says(problem));
        }
        if options.permits.is_some() {
            let problem =
                format!("`permits` does not apply to `mode = \"{SINGLE_FLIGHT}\"`: `{name}` {round}");
            return Err(path.key("mode").says(problem));
        }
        let writes_too = |other: &&Worker| {
            let is_on_it = options.keys_of(other).contains(&options.key_of(worker));
            is_on_it && other.mode.name() != SINGLE_FLIGHT && other.mode.name() != "read"
        };
        match options.workers.iter().find(writes_too) {
            None => Ok(()),
            Some(other) => {
                let problem = format!(
                    "`{name}` keeps results in the resource that `{}` writes: give one of them another `key`",
                    other.name
                );
                Err(path.key("mode").says(problem))
            }
        }
    }

    fn reads(&self, _: &Worker) -> bool {
        true
    }

    fn claims(&self, _: &Worker) -> bool {
        true
    }

    fn never_passes(&self, _: &Worker, point: Point) -> Option<&'static str> {
        match point {
            Point::Entered | Point::Read | Point::Checked | Point::Sent | Point::Answered => {
                Some("its `mode` is single_flight, it writes by the client of results")
            }
            _ => None,
        }
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("single flight", 0.04, single_flight)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}

/// Makes all workers single-flight workers, some of which fail.
fn single_flight(options: &mut Options, site: &mut Site) {
    for worker in &mut options.workers {
        let fails = Some(1).filter(|_| site.chance(0.2));
        let Worker { name, starts, rounds, key, think, deadline, work, ttl, .. } = worker.clone();
        let mode = WorkerMode::new(SINGLE_FLIGHT);
        let (read, release) = (ReadMode::None, ReleaseMode::default());
        let own = Worker { name, mode, starts, rounds, key, think, deadline, work, ttl, ..Worker::default() };
        *worker = Worker { fails, read, release, ..own };
    }
}
