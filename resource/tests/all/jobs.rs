//! The worker of a job queue: what it does with the queue after each outcome at the resource.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::world::{World, run};
use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::{BackendError, Backoff, FencingToken, Instant, LockKey, Owner};
use resource::client::Client;
use resource::fence::Guard;
use resource::http::{App, Config};
use resource::jobs::{Fate, JobWorker, Part, ResourceJobs, Task, Terms, Worked, job_key};
use resource::store::{MemoryStore, Write};
use resource::worker::Ending;

/// A queue that gives out job 7 in each claim, and notes the steps.
#[derive(Clone)]
struct Line {
    world: World,
    key: LockKey,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    claims: u64,
    steps: Vec<String>,
    /// True if every claim is over at the first heartbeat.
    is_over: bool,
}

impl Line {
    fn note(&self, step: String) -> Result<bool, BackendError> {
        self.seen.lock().unwrap().steps.push(step);
        Ok(true)
    }

    fn steps(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap().steps)
    }
}

impl Jobs for Line {
    type Runtime = World;

    fn runtime(&self) -> &World {
        &self.world
    }

    fn key(&self) -> &LockKey {
        &self.key
    }

    async fn enqueue(&self, _: u64, _: &[u8], _: Duration, _: Instant) -> Result<bool, BackendError> {
        Ok(true)
    }

    async fn claim(&self, _: Duration, _: Option<&str>, _: Instant) -> Result<Claimed, BackendError> {
        let mut seen = self.seen.lock().unwrap();
        seen.claims += 1;
        let token = FencingToken::new(seen.claims).unwrap();
        let owner = Owner::random(&self.world, None);
        let payload = b"to: ada".to_vec();
        Ok(Claimed::Job(QueuedJob { id: 7, token, owner, attempts: seen.claims, payload }))
    }

    async fn extend(&self, _: &QueuedJob, _: Duration, _: Instant) -> Result<bool, BackendError> {
        Ok(!self.seen.lock().unwrap().is_over)
    }

    async fn retry(&self, _: &QueuedJob, _: Duration, error: &str, _: Instant) -> Result<bool, BackendError> {
        self.note(format!("retry: {error}"))
    }

    async fn catch_up(&self, _: &QueuedJob, seen: FencingToken, _: Instant) -> Result<bool, BackendError> {
        self.note(format!("catch up with {seen}"))
    }

    async fn finish(&self, _: &QueuedJob, _: Instant) -> Result<bool, BackendError> {
        self.note("finish".to_owned())
    }

    async fn bury(&self, _: &QueuedJob, error: &str, _: Instant) -> Result<bool, BackendError> {
        self.note(format!("bury: {error}"))
    }
}

/// Runs a test with a worker, whose jobs have two attempts.
fn with_worker<F: Future<Output = ()>>(
    test: impl FnOnce(JobWorker<Line, ResourceJobs<World>>, Client<World>) -> F,
) {
    let app = App::new(Arc::new(MemoryStore::new()), Config::default());
    run(&app, &[], |world| {
        let key = LockKey::new("jobs", "mails").unwrap();
        let queue = Line { world: world.clone(), key, seen: Arc::default() };
        let client = || Client::new(world.clone(), "resource:80");
        let backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(1) };
        let terms = Terms { attempts_max: 2, backoff, lease: Duration::from_secs(3), ..Terms::default() };
        test(JobWorker::new(queue, ResourceJobs::new(client()), terms, ()), client())
    });
}

async fn send(task: Task) -> Result<Part, String> {
    Ok(Part::Done(task.payload))
}

async fn fail(_: Task) -> Result<Part, String> {
    Err("no such address".to_owned())
}

async fn fate<F>(
    worker: &mut JobWorker<Line, ResourceJobs<World>>,
    work: impl FnMut(Task) -> F + Send,
) -> Fate
where
    F: Future<Output = Result<Part, String>> + Send,
{
    match worker.work(work).await.unwrap() {
        Worked::Job { id: 7, fate } => fate,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_is_removed_once_its_result_is_committed() {
    with_worker(async |mut worker, client| {
        assert_eq!(fate(&mut worker, send).await, Fate::Done);
        assert_eq!(worker.queue().steps(), ["finish"]);
        let key = job_key(&worker.queue().key, 7).unwrap();
        let read = client.read(&key, World::at(9)).await.unwrap();
        assert!(format!("{read:?}").contains("done to: ada"), "{read:?}");
        // It comes back, and is not run again.
        assert_eq!(fate(&mut worker, fail).await, Fate::DoneBefore);
        assert_eq!(worker.queue().steps(), ["finish"]);
    });
}

#[test]
fn a_job_that_fails_is_given_back_and_buried_in_the_end() {
    with_worker(async |mut worker, _| {
        let error = "no such address".to_owned();
        assert_eq!(fate(&mut worker, fail).await, Fate::Failed(error.clone()));
        assert_eq!(worker.queue().steps(), ["retry: no such address"]);
        assert_eq!(fate(&mut worker, fail).await, Fate::Dead(error));
        assert_eq!(worker.queue().steps(), ["bury: no such address"]);
        // Its workers have died in both attempts.
        let error = "no answer from its worker in attempt 2".to_owned();
        assert_eq!(fate(&mut worker, send).await, Fate::Dead(error));
    });
}

#[test]
fn the_parts_of_a_job_go_on_from_the_committed_progress() {
    with_worker(async |mut worker, _| {
        let parts = async |task: Task| match (task.attempts, task.progress.as_deref()) {
            (1, None) => Ok(Part::Progress(b"1".to_vec())),
            (1, Some(b"1")) => Err("the second part fails".to_owned()),
            (2, Some(b"1")) => Ok(Part::Done(b"2".to_vec())),
            other => panic!("{other:?}"),
        };
        assert_eq!(fate(&mut worker, parts).await, Fate::Failed("the second part fails".to_owned()));
        assert_eq!(fate(&mut worker, parts).await, Fate::Done);
    });
}

#[test]
fn a_refused_token_lets_the_queue_catch_up() {
    with_worker(async |mut worker, client| {
        let key = job_key(&worker.queue().key, 7).unwrap();
        let guard = Guard::token(FencingToken::new(34).unwrap());
        let write = Write { guard, owner: None, body: "part 1".into() };
        client.put(&key, &write, World::at(9)).await.unwrap();
        assert_eq!(fate(&mut worker, send).await, Fate::Left(Ending::Refused));
        assert_eq!(worker.queue().steps(), ["catch up with 34"]);
    });
}

#[test]
fn work_is_dropped_when_a_heartbeat_finds_the_claim_over() {
    with_worker(async |mut worker, _| {
        let world = worker.queue().world.clone();
        let slow = |task: Task| {
            let world = world.clone();
            async move {
                dlock::Runtime::sleep_until(&world, World::at(10)).await;
                send(task).await
            }
        };
        worker.queue().seen.lock().unwrap().is_over = true;
        assert_eq!(fate(&mut worker, slow).await, Fate::Left(Ending::Lost));
        assert!(dlock::Runtime::now(&world) < World::at(3), "a third of the lease has passed");
        worker.queue().seen.lock().unwrap().is_over = false;
        assert_eq!(fate(&mut worker, slow).await, Fate::Done);
        assert_eq!(worker.queue().steps(), ["finish"]);
    });
}
