//! The rounds of a worker that holds the lock while it writes: acquire, read, work, check, write, release.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use dlock::{Backend, Lock, LockKey, Runtime};
use futures_util::future::BoxFuture;
use resource::client::{Client, Retry};
use resource::worker::{Job, Reading, Worker};

use super::seat::{RESOURCE_ADDRESS, Seat, Yields, lock_key};
use super::worker::{ReadMode, ReleaseMode, Worker as Spec};
use crate::world::runtime::SimRuntime;

/// Keeps `future`, and the stack that its polls need, out of the caller: a run would touch as much memory
/// as the largest of its siblings needs.
#[inline(never)]
pub(super) fn apart<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(future)
}

/// All rounds of a worker, with a lock on this backend.
pub(super) async fn work<B: Backend<Runtime = SimRuntime>>(seat: Seat<'_>, backend: B) {
    let Seat { process, options, spec, .. } = seat;
    // The schedule was validated: a key or a TTL that can't be used does not get here.
    let (Ok(key), Ok(lock)) = (lock_key(options.key_of(spec)), Lock::new(backend, seat.lock_options()))
    else {
        return;
    };
    let runtime = process.runtime();
    let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
    let worker = Worker::new(lock, client, Yields(runtime.clone()));
    let job = job(key, spec);
    for round in 0..spec.rounds {
        let mut acquire = Box::pin(worker.acquire(&job));
        let acquired = match spec.cancel_at.get(round as usize) {
            Some(pending) => drop_when_pending(*pending, acquire.as_mut()).await,
            None => process.poll_cancellable(acquire.as_mut()).await,
        };
        if acquired.is_none() {
            requests_are_sent(&runtime).await;
        }
        drop(acquire);
        if let Some(Ok(handle)) = acquired {
            // A grant that can't be used ends in the events; the next round goes on.
            let _ = Box::pin(worker.hold(&job, handle)).await;
        }
        seat.think().await;
    }
}

fn job(key: LockKey, spec: &Spec) -> Job {
    Job {
        key,
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

/// The longest time that a lease is renewed, if the schedule names none: longer than any run.
const RENEW_CAP: Duration = Duration::from_secs(3600);

/// Runs `future` until it ends, or gives it up when it has been pending for the `nth` time; the caller
/// drops it then.
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

/// Completes when every task that was ready has had its turn. A client hands its request to a task of its
/// connection; one that is dropped before that task ran was never sent, and leaves nothing to clean up.
async fn requests_are_sent(runtime: &SimRuntime) {
    runtime.sleep_until(runtime.now() + TURNS).await;
}

/// Some hundred turns of tasks, since madsim lets 50 to 100 ns pass with each; less than any segment is
/// under way.
const TURNS: Duration = Duration::from_micros(50);
