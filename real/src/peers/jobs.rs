//! Our job queue on Redis, with one worker.

use std::time::Duration;

use dlock::queue::{Claimed, Jobs};
use dlock::redis::Queue;
use dlock::{Instant, Runtime, TokioRuntime};

use super::slice::{Job, Scenario, Slice, Stopped, nanos};

/// The timeout of each step.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the job's scenario, [`Scenario::Claim`] or [`Scenario::Drain`], on an empty queue.
pub(super) async fn run(queue: &Queue<TokioRuntime>, job: &Job) -> Result<Slice, Stopped> {
    // Opens the connection and loads the scripts.
    enqueue(queue, 0, job).await?;
    work(queue, job).await?;
    match job.scenario {
        Scenario::Drain => drain(queue, job).await,
        _ => claim(queue, job).await,
    }
}

async fn claim(queue: &Queue<TokioRuntime>, job: &Job) -> Result<Slice, Stopped> {
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = queue.runtime().now();
    for id in 1..=job.operations {
        enqueue(queue, id, job).await?;
        let called = queue.runtime().now();
        let (claimed, finished) = work(queue, job).await?;
        slice.acquire_ns.push(nanos(claimed.saturating_since(called)));
        slice.release_ns.push(nanos(finished.saturating_since(claimed)));
    }
    slice.elapsed_ns = nanos(queue.runtime().now().saturating_since(begun));
    Ok(slice)
}

async fn drain(queue: &Queue<TokioRuntime>, job: &Job) -> Result<Slice, Stopped> {
    for id in 1..=job.operations {
        enqueue(queue, id, job).await?;
    }
    let begun = queue.runtime().now();
    for _ in 0..job.operations {
        work(queue, job).await?;
    }
    let elapsed_ns = nanos(queue.runtime().now().saturating_since(begun));
    Ok(Slice { completed: job.operations, elapsed_ns, ..Slice::default() })
}

/// Stores a job, to be claimed at once.
async fn enqueue(queue: &Queue<TokioRuntime>, id: u64, job: &Job) -> Result<(), Stopped> {
    queue.enqueue(id, job.name.as_bytes(), Duration::ZERO, deadline(queue)).await?;
    Ok(())
}

/// Claims the next job and finishes it; returns when it was claimed, and when finished.
async fn work(queue: &Queue<TokioRuntime>, job: &Job) -> Result<(Instant, Instant), Stopped> {
    let Claimed::Job(claimed) = queue.claim(job.ttl(), None, deadline(queue)).await? else {
        return Err("the queue has no job that was stored".into());
    };
    let granted = queue.runtime().now();
    if !queue.finish(&claimed, deadline(queue)).await? {
        return Err("the claim of a job was over before it was finished".into());
    }
    Ok((granted, queue.runtime().now()))
}

fn deadline(queue: &Queue<TokioRuntime>) -> Instant {
    queue.runtime().now() + ANSWER_TIMEOUT
}
