//! Two workers share a queue of jobs. The first one pauses for longer than its lease, and the second one does
//! its job. What is done is decided where the effect is kept, by the token of the claim.
//!
//! Run it: `cargo run --example job_queue -- 127.0.0.1:6379`.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::redis::{Queue, Redis, RedisOptions};
use dlock::{FencingToken, Instant, LockKey, Runtime, TokioRuntime};
use tokio::runtime::Handle;

/// The mails that were sent, in place of a resource that checks tokens: `resource::jobs` works with one.
#[derive(Default)]
struct Outbox {
    /// The highest token seen for each job, and its mail.
    jobs: BTreeMap<u64, (FencingToken, Option<String>)>,
}

impl Outbox {
    /// Claims the job for the token; returns whether it is done. Lower tokens are refused from then on.
    fn claim(&mut self, job: &QueuedJob) -> bool {
        let (seen, mail) = self.jobs.entry(job.id).or_insert((job.token, None));
        *seen = job.token.max(*seen);
        mail.is_some()
    }

    /// Commits the mail of a job, unless a newer claim has been here; returns whether it did.
    fn commit(&mut self, job: &QueuedJob) -> bool {
        let Some((seen, mail)) = self.jobs.get_mut(&job.id).filter(|(seen, _)| *seen <= job.token) else {
            return false;
        };
        *seen = job.token;
        *mail = Some(String::from_utf8_lossy(&job.payload).into_owned());
        true
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    let runtime = TokioRuntime::new(Handle::current());
    let redis = Redis::new(runtime.clone(), &address, RedisOptions::default())?;
    let queue = Queue::new(redis, LockKey::new("jobs", "mails")?);
    let deadline = runtime.now() + Duration::from_secs(60);
    for (id, to) in [(1, "ada@example.org"), (2, "bob@example.org")] {
        queue.enqueue(id, to.as_bytes(), Duration::ZERO, deadline).await?;
    }
    let mut outbox = Outbox::default();

    let paused = claim(&queue, deadline).await?.ok_or("a job is stored")?;
    outbox.claim(&paused);
    // The first worker sends no heartbeat, as if it were paused: the second one gets its job in the end.
    while let Some(job) = claim(&queue, deadline).await? {
        if !outbox.claim(&job) && outbox.commit(&job) {
            println!("the second worker sends mail {}, in attempt {}", job.id, job.attempts);
        }
        queue.finish(&job, deadline).await?;
    }
    if !outbox.commit(&paused) {
        println!("the first worker comes too late with mail {}", paused.id);
    }
    println!("{} mails", outbox.jobs.values().filter(|(_, mail)| mail.is_some()).count());
    Ok(())
}

/// Claims the next job, and waits until it is ready; `None` if no job is left.
async fn claim(queue: &Queue<TokioRuntime>, deadline: Instant) -> Result<Option<QueuedJob>, Box<dyn Error>> {
    loop {
        match queue.claim(Duration::from_millis(500), None, deadline).await? {
            Claimed::Job(job) => return Ok(Some(job)),
            Claimed::Wait { left } => tokio::time::sleep(left + Duration::from_millis(1)).await,
            Claimed::Empty => return Ok(None),
        }
    }
}
