//! A job queue on a live Redis, with the resource as the guarded side: each job is committed once, by the
//! worker with the latest claim.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::queue::{Claimed, Jobs};
use dlock::redis::{Queue, Redis, RedisOptions};
use dlock::{Backoff, Instant, LockKey, Runtime, TokioRuntime};
use real::servers::{Persistence, Redis as Server, Stage, ask};
use resource::client::Client;
use resource::http::{App, Config, serve_connection};
use resource::jobs::{Fate, JobWorker, Part, ResourceJobs, Task, Terms, Worked, enqueue};
use resource::store::MemoryStore;
use resource::worker::Ending;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// A Redis and a resource in memory.
struct Scene {
    server: Server,
    resource: String,
    _stage: Stage,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::new().unwrap();
        let server = Server::start(&stage, "redis", Persistence::None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let resource = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let app = App::new(Arc::new(MemoryStore::new()), Config::default());
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, &app));
            }
        });
        Self { server, resource, _stage: stage }
    }

    fn queue(&self) -> Queue<TokioRuntime> {
        let redis = Redis::new(runtime(), &self.server.address(), RedisOptions::default()).unwrap();
        Queue::new(redis, LockKey::new("jobs", "mails").unwrap())
    }

    fn worker(&self, terms: Terms) -> JobWorker<Queue<TokioRuntime>, ResourceJobs<TokioRuntime>> {
        let record = ResourceJobs::new(Client::new(runtime(), &self.resource));
        JobWorker::new(self.queue(), record, terms, ())
    }

    async fn store(&self, ids: impl IntoIterator<Item = u64>) {
        let queue = self.queue();
        for id in ids {
            assert!(enqueue(&queue, id, b"to: ada", Duration::ZERO, soon()).await.unwrap());
        }
    }

    /// Sends a command to the server.
    fn says(&self, line: &str) -> String {
        ask(self.server.port(), &format!("{line}\r\n"), |answer| answer.ends_with("\r\n")).unwrap()
    }
}

fn runtime() -> TokioRuntime {
    TokioRuntime::new(Handle::current())
}

fn soon() -> Instant {
    runtime().now() + Duration::from_secs(10)
}

fn terms(lease_ms: u64) -> Terms {
    Terms {
        lease: Duration::from_millis(lease_ms),
        attempts_max: 2,
        backoff: Backoff { base: Duration::from_millis(1), max: Duration::from_millis(2) },
        answer_timeout: Duration::from_secs(10),
        ..Terms::default()
    }
}

/// Does the job in one part.
async fn at_once(task: Task) -> Result<Part, String> {
    Ok(Part::Done(task.payload))
}

/// Works until the queue is empty; returns the fates of the jobs.
async fn until_empty(
    worker: &mut JobWorker<Queue<TokioRuntime>, ResourceJobs<TokioRuntime>>,
) -> Vec<(u64, Fate)> {
    let mut fates = Vec::new();
    loop {
        match worker.work(at_once).await.unwrap() {
            Worked::Job { id, fate } => fates.push((id, fate)),
            Worked::Wait { left } => {
                tokio::time::sleep(left.clamp(Duration::from_millis(5), Duration::from_millis(50))).await;
            }
            Worked::Empty => return fates,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_the_jobs_and_commit_each_once() {
    let scene = Scene::new().await;
    scene.store(1..=40).await;
    let runs: Vec<_> = (0..4)
        .map(|_| {
            let mut worker = scene.worker(terms(30_000));
            tokio::spawn(async move { until_empty(&mut worker).await })
        })
        .collect();
    let mut fates = BTreeMap::new();
    for run in runs {
        for (id, fate) in run.await.unwrap() {
            assert_eq!(fates.insert(id, fate), None, "job {id} twice");
        }
    }
    assert_eq!(fates, (1..=40).map(|id| (id, Fate::Done)).collect());
    // A job of the same number is stored again, and found done.
    scene.store([7]).await;
    assert_eq!(until_empty(&mut scene.worker(terms(1000))).await, [(7, Fate::DoneBefore)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_pauses_past_its_lease_is_refused() {
    let scene = Scene::new().await;
    scene.store([1]).await;
    let mut paused = scene.worker(Terms { heartbeat: false, ..terms(200) });
    let Claimed::Job(job) = paused.claim().await.unwrap() else { panic!("the job is ready") };
    let mut other = scene.worker(terms(10_000));
    // The lease ends, and the other one does the job.
    let late = move |task: Task| async move {
        assert_eq!(until_empty(&mut other).await, [(1, Fate::Done)]);
        at_once(task).await
    };
    let mut late = Some(late);
    let fate = paused.run(&job, |task| (late.take().expect("one part"))(task)).await.unwrap();
    assert_eq!(fate, Fate::Left(Ending::Refused));
    assert!(!paused.queue().finish(&job, soon()).await.unwrap(), "its claim is over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_keep_a_claim_and_find_out_that_it_is_over() {
    let scene = Scene::new().await;
    scene.store([1, 2]).await;
    let mut worker = scene.worker(terms(300));
    let slow = |task: Task| async move {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        at_once(task).await
    };
    let other = scene.queue();
    let watched = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        // The second job is all that there is to claim.
        let claimed = other.claim(Duration::from_secs(30), None, soon()).await.unwrap();
        assert!(matches!(&claimed, Claimed::Job(job) if job.id == 2), "{claimed:?}");
        let claimed = other.claim(Duration::from_secs(30), None, soon()).await.unwrap();
        assert!(matches!(claimed, Claimed::Wait { .. }), "{claimed:?}");
    };
    let (worked, ()) = tokio::join!(worker.work(slow), watched);
    assert!(matches!(worked.unwrap(), Worked::Job { id: 1, fate: Fate::Done }));

    scene.store([3]).await;
    let taken = |_: Task| async {
        // An operator removes all claims.
        scene.says("DEL lock:v1:{jobs:mails}:jobs");
        tokio::time::sleep(Duration::from_secs(60)).await;
        unreachable!("the work is dropped")
    };
    let worked = worker.work(taken).await.unwrap();
    assert!(matches!(worked, Worked::Job { id: 3, fate: Fate::Left(Ending::Lost) }), "{worked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_goes_on_from_its_progress() {
    let scene = Scene::new().await;
    scene.store([1]).await;
    let seen = Mutex::new(Vec::new());
    let part = |task: Task| {
        let done = task.progress.map_or(0, |progress| progress[0]);
        seen.lock().unwrap().push((task.attempts, done));
        async move {
            match done {
                1 if task.attempts == 1 => Err("the second part fails".to_owned()),
                2 => Ok(Part::Done(vec![3])),
                done => Ok(Part::Progress(vec![done + 1])),
            }
        }
    };
    let mut worker = scene.worker(terms(30_000));
    let first = worker.work(part).await.unwrap();
    assert!(matches!(first, Worked::Job { fate: Fate::Failed(_), .. }), "{first:?}");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let second = worker.work(part).await.unwrap();
    assert!(matches!(second, Worked::Job { fate: Fate::Done, .. }), "{second:?}");
    assert_eq!(*seen.lock().unwrap(), [(1, 0), (1, 1), (2, 1), (2, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_is_dead_and_requeued() {
    let scene = Scene::new().await;
    scene.store([1]).await;
    let (mut worker, queue) = (scene.worker(terms(30_000)), scene.queue());
    let fails = |_: Task| async { Err("no such address".to_owned()) };
    let mut fates = Vec::new();
    while fates.len() < 2 {
        match worker.work(fails).await.unwrap() {
            Worked::Job { fate, .. } => fates.push(fate),
            _ => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
    let error = "no such address".to_owned();
    assert_eq!(fates, [Fate::Failed(error.clone()), Fate::Dead(error.clone())]);
    let dead = queue.dead(10, soon()).await.unwrap();
    assert!(matches!(dead.as_slice(), [job] if job.id == 1 && job.error == error), "{dead:?}");
    assert!(!enqueue(&queue, 1, b"again", Duration::ZERO, soon()).await.unwrap(), "a dead job stays dead");
    assert!(matches!(worker.work(at_once).await.unwrap(), Worked::Empty));
    assert!(queue.requeue(1, soon()).await.unwrap());
    assert!(!queue.requeue(1, soon()).await.unwrap());
    assert_eq!(until_empty(&mut worker).await, [(1, Fate::Done)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_kills_its_workers_is_dead_after_its_last_attempt() {
    let scene = Scene::new().await;
    scene.store([1]).await;
    let queue = scene.queue();
    for attempt in 1..=2 {
        // The worker dies here.
        let claimed = queue.claim(Duration::from_millis(1), None, soon()).await.unwrap();
        assert!(matches!(&claimed, Claimed::Job(job) if job.attempts == attempt), "{claimed:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let fates = until_empty(&mut scene.worker(terms(1000))).await;
    assert_eq!(fates, [(1, Fate::Dead("no answer from its worker in attempt 2".to_owned()))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_is_lost_catches_up() {
    let scene = Scene::new().await;
    scene.store(1..=3).await;
    let mut worker = scene.worker(terms(30_000));
    // The tokens of three claims; the third job is back in the queue.
    let Claimed::Job(first) = worker.claim().await.unwrap() else { panic!("a job is ready") };
    let Claimed::Job(second) = worker.claim().await.unwrap() else { panic!("a job is ready") };
    let fails = |_: Task| async { Err("later".to_owned()) };
    let failed = worker.work(fails).await.unwrap();
    assert!(matches!(failed, Worked::Job { id: 3, fate: Fate::Failed(_) }), "{failed:?}");
    assert_eq!((first.token.as_u64(), second.token.as_u64()), (1, 2));
    for job in [&first, &second] {
        worker.queue().finish(job, soon()).await.unwrap();
    }
    // The server has lost the last claims.
    scene.says("HSET lock:v1:{jobs:mails}:jobs token 0");
    let fates = until_empty(&mut worker).await;
    assert_eq!(fates, [(3, Fate::Left(Ending::Refused)), (3, Fate::Done)]);
}
