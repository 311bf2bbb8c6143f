//! The rounds of a worker that holds the lock while it writes: acquire, read, work, check, write, release.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use dlock::election::Election;
use dlock::{Backend, Lock, LockKey, Runtime};
use futures_util::future::BoxFuture;
use resource::client::{Client, Retry};
use resource::fence::cron::Ticks;
use resource::worker::{Job, Reading, Worker};
use sim::faults::Call;
use sim::world::runtime::SimRuntime;

use super::firings::Firings;
use super::flights::Flights;
use super::seat::{RESOURCE_ADDRESS, Seat, Yields, lock_key};
use super::ticks::TickRecord;
use super::worker::{ReadMode, ReleaseMode, Worker as Spec};

/// Boxes `future`, so that neither the future nor the stack of its polls is part of the caller. Otherwise a
/// run would touch as much memory as its largest sibling needs.
#[inline(never)]
pub(super) fn apart<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(future)
}

/// Works all rounds of a worker, with a lock on this backend.
pub(super) async fn work<B: Backend<Runtime = SimRuntime>>(seat: Seat<'_>, backend: B) {
    let Seat { process, options, spec, .. } = seat;
    // The schedule was validated, so the keys and the TTL are valid.
    let keys: Result<Vec<LockKey>, _> = options.keys_of(spec).into_iter().map(lock_key).collect();
    let (Ok(keys), Ok(lock)) = (keys, Lock::new(backend, seat.lock_options())) else { return };
    let Some(first) = keys.first() else { return };
    if spec.flies() {
        return fly(seat, &lock, first).await;
    }
    if spec.fires() {
        let ticks = TickRecord::at(&seat.workplace(Vec::new()));
        let pauses = Yields(process.clone());
        let firings = Firings::new((process, options, spec), lock, first.clone(), ticks, pauses);
        return if let Some(firings) = firings {
            fire(seat, firings).await
        };
    }
    let client = Client::new(process.runtime(), RESOURCE_ADDRESS);
    let worker = Worker::new(lock, client, Yields(process.clone()));
    let job = job(first.clone(), spec);
    let election = match spec.leads() || spec.observes() {
        // The schedule was validated, so the lock has one permit.
        true => worker.election(&job).ok(),
        false => None,
    };
    if let Some(election) = election.as_ref().filter(|_| spec.observes()) {
        return observe(seat, &worker, election, &job).await;
    }
    for round in 0..spec.rounds {
        // A round that fails is in the history; the next round goes on.
        if let Some(election) = &election {
            if let Some(Ok(leadership)) = acquired(seat, round, worker.campaign(election, &job)).await {
                let _ = Box::pin(worker.lead(&job, leadership)).await;
            }
        } else if spec.locks_several() {
            if let Some(Ok(handles)) = acquired(seat, round, worker.acquire_all(&keys, &job)).await {
                let _ = Box::pin(worker.hold_all(&job, handles)).await;
            }
        } else if let Some(depth) = spec.nests() {
            let scope = worker.scope();
            if let Some(Ok(entered)) = acquired(seat, round, worker.enter(&scope, &job)).await {
                let _ = Box::pin(worker.hold_nested(&job, depth, &scope, entered)).await;
            }
        } else if spec.upgrades() {
            upgrade(seat, round, &worker, &job).await;
        } else if let Some(Ok(handle)) = acquired(seat, round, worker.acquire(&job)).await {
            let _ = Box::pin(worker.hold(&job, handle)).await;
        }
        seat.think().await;
    }
}

/// Works a round of a reader that wants to write. If the library made its lease one for writing, it would
/// write under that.
async fn upgrade<B: Backend<Runtime = SimRuntime>>(
    seat: Seat<'_>,
    round: u32,
    worker: &Worker<B, Yields>,
    job: &Job,
) {
    let reading = Job { shared: true, ..job.clone() };
    let Some(Ok(reader)) = acquired(seat, round, worker.acquire(&reading)).await else { return };
    if reader.upgrade().is_ok() {
        let _ = Box::pin(worker.hold(job, reader)).await;
        return;
    }
    let _ = Box::pin(worker.hold(&reading, reader)).await;
    if let Some(Ok(writer)) = acquired(seat, round, worker.acquire(job)).await {
        let _ = Box::pin(worker.hold(job, writer)).await;
    }
}

/// Works all rounds of a worker that fires by its clock.
async fn fire<B, T>(seat: Seat<'_>, mut firings: Firings<B, T, Yields>)
where
    B: Backend<Runtime = SimRuntime>,
    T: Ticks,
{
    for round in 0..seat.spec.rounds {
        firings.next().await;
        if let Some(Ok(handle)) = acquired(seat, round, firings.acquire()).await {
            Box::pin(firings.run(handle)).await;
        }
        seat.think().await;
    }
}

/// Works all rounds of an observer: waits for one new term in each.
async fn observe<B: Backend<Runtime = SimRuntime>>(
    seat: Seat<'_>,
    worker: &Worker<B, Yields>,
    election: &Election<B>,
    job: &Job,
) {
    let Seat { process, spec, .. } = seat;
    let mut observer = election.observe();
    for _ in 0..spec.rounds {
        let deadline = process.runtime().now() + spec.deadline.duration();
        if worker.observe(&mut observer, job, deadline).await.is_err() {
            return;
        }
    }
}

/// Works all rounds of a worker of flights.
async fn fly<B: Backend<Runtime = SimRuntime>>(seat: Seat<'_>, lock: &Lock<B>, key: &LockKey) {
    let flights = Flights::new(seat.process, seat.spec);
    for _ in 0..seat.spec.rounds {
        Box::pin(flights.round(lock, key)).await;
        seat.think().await;
    }
}

/// Runs an acquire of the round. Returns `None` if the schedule or a fault drops it before its end.
async fn acquired<F: Future>(seat: Seat<'_>, round: u32, acquire: F) -> Option<F::Output> {
    let Seat { process, spec, .. } = seat;
    let mut acquire = Box::pin(acquire);
    let acquired = match spec.cancel_at.get(round as usize) {
        Some(pending) => drop_when_pending(*pending, acquire.as_mut()).await,
        None => process.poll_cancellable(Call::Acquire, acquire.as_mut()).await,
    };
    if acquired.is_none() {
        requests_are_sent(&process.runtime()).await;
    }
    acquired
}

fn job(key: LockKey, spec: &Spec) -> Job {
    Job {
        key,
        shared: spec.shared,
        acquire_timeout: spec.deadline.duration(),
        reading: match spec.read {
            ReadMode::None => Reading::None,
            ReadMode::Plain => Reading::Plain,
            ReadMode::Fenced => Reading::Fenced,
        },
        work: spec.work.duration(),
        check: spec.check,
        renew: spec.renew.then(|| spec.renew_cap.map_or(RENEW_CAP, |cap| cap.duration())),
        writes: u64::from(spec.writes),
        retry: spec.retry_put.then(Retry::default),
        answer_timeout: spec.deadline.duration(),
        release: spec.release != ReleaseMode::None,
    }
}

/// Longest time for which a lease is renewed if the schedule sets none: longer than any run.
const RENEW_CAP: Duration = Duration::from_secs(3600);

/// Runs `future` until it ends. Returns `None` when it has been pending for the `nth` time; the caller then
/// drops it.
async fn drop_when_pending<F: Future>(nth: u32, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut pending = 0;
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            pending += 1;
            if pending >= nth { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

/// Waits until every ready task has run. A client hands its request to a task of its connection. A request
/// that is dropped before that task runs is never sent, and leaves nothing to clean up.
async fn requests_are_sent(runtime: &SimRuntime) {
    runtime.sleep_until(runtime.now() + POLLS).await;
}

/// Time for 500 to 1000 polls of tasks: 50 to 100 ns pass in madsim with each. Less than the network needs
/// for a segment.
const POLLS: Duration = Duration::from_micros(50);
