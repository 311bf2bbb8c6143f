//! A job queue: a worker stores jobs, claims one job a round, and commits it at the resource or in
//! PostgreSQL, with the token of the claim. Each job is to take effect once.

use futures_util::future::BoxFuture;
use sim::{FieldPath, Invalid};

use super::super::jobs::{JOBS_MAX, jobs, work_on_jobs};
use super::super::options::Options;
use super::super::point::Point;
use super::super::rounds::apart;
use super::super::seat::Seat;
use super::super::system::System;
use super::super::wider::Wider;
use super::super::worker::{JOBS, Worker};
use super::Workload;

/// The workload `jobs`.
pub(super) struct Working;

impl Workload for Working {
    fn name(&self) -> &'static str {
        JOBS
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "claims a job of a queue, and commits it"
    }

    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let name = &worker.name;
        if ![System::REDIS, System::POSTGRES].contains(&options.system) {
            let problem = format!(
                "`mode = \"{JOBS}\"` of `{name}` needs a queue: the system `redis` or `postgres`, not `{}`",
                options.system
            );
            return Err(path.key("mode").says(problem));
        }
        if options.tls {
            let problem = format!("`tls` = true: the queue of `{name}` is reached without TLS");
            return Err(FieldPath::top("tls").says(problem));
        }
        if worker.jobs.is_some_and(|jobs| !(1..=JOBS_MAX).contains(&jobs)) {
            let problem = format!("`jobs` of `{name}`: it must be 1 to {JOBS_MAX}");
            return Err(path.key("jobs").says(problem));
        }
        let plain = Worker::default();
        let others = [
            ("shared", worker.shared != plain.shared),
            ("retry_every", worker.retry_every != plain.retry_every),
            ("check", worker.check != plain.check),
            ("read", worker.read != plain.read),
            ("renew_cap", worker.renew_cap != plain.renew_cap),
            ("release", worker.release != plain.release),
            ("cancel_at", worker.cancel_at != plain.cancel_at),
        ];
        match others.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((field, _)) => {
                let round = self.round();
                let problem = format!("`{field}` does not apply to `mode = \"{JOBS}\"`: `{name}` {round}");
                Err(path.key(field).says(problem))
            }
        }
    }

    fn reads(&self, _: &Worker) -> bool {
        // Without fencing, its claim is a plain read.
        true
    }

    fn claims(&self, _: &Worker) -> bool {
        true
    }

    fn never_passes(&self, _: &Worker, point: Point) -> Option<&'static str> {
        match point {
            Point::Read | Point::Worked | Point::Sent | Point::Answered => None,
            _ => Some("its `mode` is jobs, it takes no lock"),
        }
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("jobs", 0.04, work_on_jobs)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        let addresses = || seat.options.system.get().addresses(&seat);
        if let Some(rounds) = seat.given_rounds(addresses) {
            return rounds;
        }
        // The schedule was validated, so the queue can use the server.
        jobs(&seat.workplace(addresses())).unwrap_or_else(|| apart(std::future::ready(())))
    }
}
