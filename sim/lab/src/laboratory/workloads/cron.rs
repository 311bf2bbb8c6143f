//! A cron: a worker fires by its own clock, and commits each tick that is due at the resource or in
//! PostgreSQL, with the token of its grant. Each tick is to run once.

use futures_util::future::BoxFuture;
use sim::entropy::Site;
use sim::{FieldPath, Invalid, Span};

use super::super::cron::{Cron, MissedMode, TickStore};
use super::super::options::Options;
use super::super::point::Point;
use super::super::seat::Seat;
use super::super::wider::Wider;
use super::super::worker::{CRON, ReadMode, ReleaseMode, Worker, WorkerMode};
use super::Workload;
use super::lock::Locking;

/// The workload `cron`.
pub(super) struct Firing;

impl Workload for Firing {
    fn name(&self) -> &'static str {
        CRON
    }

    fn acquires(&self) -> bool {
        true
    }

    fn round(&self) -> &'static str {
        "fires by its clock, and commits each tick that is due"
    }

    /// Refuses options of the lock's rounds that a firing does not have.
    fn check(&self, path: &FieldPath, worker: &Worker, options: &Options) -> Result<(), Invalid> {
        let field = match () {
            () if worker.read != ReadMode::None => "read",
            () if worker.writes != 1 => "writes",
            () if worker.release != ReleaseMode::Script => "release",
            () if options.permits.is_some() => {
                let problem = "`permits`: ticks run under a mutex, and a worker has `mode = \"cron\"`";
                return Err(FieldPath::top("permits").says(problem));
            }
            () => return options.cron.check(),
        };
        let (name, round) = (&worker.name, self.round());
        let problem = format!("`{field}` does not apply to `mode = \"{CRON}\"`: `{name}` {round}");
        Err(path.key(field).says(problem))
    }

    fn reads(&self, _: &Worker) -> bool {
        // Without fencing, its claim is a plain read.
        true
    }

    fn claims(&self, _: &Worker) -> bool {
        true
    }

    fn never_passes(&self, worker: &Worker, point: Point) -> Option<&'static str> {
        if point == Point::Read { None } else { Locking.never_passes(worker, point) }
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("cron", 0.04, fire)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        seat.options.system.get().work(seat)
    }
}

/// Makes the workers that lock fire instead.
fn fire(options: &mut Options, site: &mut Site) {
    let every = Span::from_millis(site.one_of(&[500, 1000, 2000]));
    let late_max = site.one_of(&[None, Some(Span::from_millis(300)), Some(every.times(2))]);
    options.cron = Cron { every, late_max, missed: site.one_of(MissedMode::ALL), ..Cron::default() };
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        worker.mode = WorkerMode::new(CRON);
        (worker.read, worker.release, worker.writes) = (ReadMode::None, ReleaseMode::Script, 1);
    }
    // The resource and PostgreSQL don't see each other's tokens: a key that is written in both is not fenced.
    if options.workers.iter().all(Worker::fires) {
        options.cron.record = site.one_of(TickStore::ALL);
    }
}
