//! Compare and set: a worker without the lock. It reads, works and writes on the condition that nothing has
//! been written since, with the real HTTP client.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use resource::ResourceKey;
use resource::client::{Client, Retry};
use resource::store::Snapshot;
use resource::update::{Update, Updater};
use sim::entropy::Site;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::Point;
use super::super::rounds::apart;
use super::super::seat::{RESOURCE_ADDRESS, Seat, Yields, lock_key};
use super::super::wider::Wider;
use super::super::worker::{Worker as Spec, WorkerMode};
use super::Workload;

/// The workload `cas`.
pub(super) struct Updating;

impl Workload for Updating {
    fn name(&self) -> &'static str {
        "cas"
    }

    fn acquires(&self) -> bool {
        false
    }

    fn round(&self) -> &'static str {
        "takes no lock, and always reads and writes once an attempt"
    }

    /// Refuses 0 attempts.
    fn check(&self, path: &FieldPath, worker: &Spec, _: &Options) -> Result<(), Invalid> {
        if worker.attempts == Some(0) {
            let problem = format!("`attempts` of `{}` is 0: it must be 1 at least", worker.name);
            return Err(path.key("attempts").says(problem));
        }
        Ok(())
    }

    fn reads(&self, _: &Spec) -> bool {
        true
    }

    fn never_passes(&self, _: &Spec, point: Point) -> Option<&'static str> {
        let passes = matches!(point, Point::Read | Point::Worked | Point::Sent | Point::Answered);
        (!passes).then_some("its `mode` is cas, it takes no lock")
    }

    fn wider(&self) -> &'static [Wider] {
        const { &[Wider::new("compare and set", 0.06, compare_and_set)] }
    }

    fn rounds<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        apart(rounds(seat))
    }
}

/// Makes all workers do without the lock.
fn compare_and_set(options: &mut Options, _: &mut Site) {
    for worker in &mut options.workers {
        let Spec { name, starts, rounds, key, think, deadline, work, retry_put, .. } = worker.clone();
        let mode = WorkerMode::new(Updating.name());
        *worker =
            Spec { name, mode, starts, rounds, key, think, deadline, work, retry_put, ..Spec::default() };
    }
}

/// Works all rounds of a worker: one update in each.
async fn rounds(seat: Seat<'_>) {
    let Seat { process, options, spec, .. } = seat;
    // The schedule was validated, so the key is valid.
    let Some(key) = lock_key(options.key_of(spec)).ok().and_then(|key| ResourceKey::try_from(&key).ok())
    else {
        return;
    };
    let runtime = process.runtime();
    let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
    let updater = Updater::new(runtime, client, Yields(process.clone()), &spec.name);
    let update = update(key, spec);
    for _ in 0..spec.rounds {
        // An update that is given up is in the history; the next round goes on.
        let _ = updater.update(&update, |seen| successor(spec, seen)).await;
        seat.think().await;
    }
}

fn update(key: ResourceKey, spec: &Spec) -> Update {
    let update = Update::new(key, spec.work.duration());
    Update {
        attempts: spec.attempts.unwrap_or(update.attempts),
        retry: spec.retry_put.then(Retry::default),
        answer_timeout: spec.deadline.duration(),
        ..update
    }
}

/// Returns the value to write: it names the writer and the version that was read.
fn successor(spec: &Spec, seen: &Snapshot) -> Bytes {
    Bytes::from(format!("{} after {}", spec.name, seen.version))
}
