//! `PostgresJobs` on a live PostgreSQL: parts commit with the rows of the worker, a failing job dies after
//! its last attempt, a worker that has lost its claim commits nothing, and a restart of the server is
//! survived.

use std::time::Duration;

use dlock::queue::Jobs;
use dlock::{Backoff, LockKey, Runtime, TokioRuntime};
use real::servers::{Postgres, Stage};
use resource::fence::WriteSeq;
use resource::jobs::{
    Fate, JobGrant, JobStatements, JobWorker, Part, PostgresJobRecord, PostgresJobs, Task, Terms, Worked,
    enqueue, number_of,
};
use resource::postgres::ConnectPostgres;
use resource::worker::Ending;
use tokio::runtime::Handle;
use tokio_postgres::{Client, Error, NoTls, Transaction};

/// The number of the job of a test.
const JOB: u64 = 7;

/// Opens connections to the server of a URL.
#[derive(Clone)]
struct Connecting(String);

impl ConnectPostgres for Connecting {
    async fn connect(&self) -> Result<Client, Error> {
        let (client, connection) = tokio_postgres::connect(&self.0, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

type Worker =
    JobWorker<PostgresJobs<TokioRuntime, Connecting>, PostgresJobRecord<TokioRuntime, Connecting, Lines>>;

/// Writes a row for each part, with the number of the attempt. The text `ignored` makes it fail, and ignore
/// that.
struct Lines;

impl JobStatements for Lines {
    async fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        grant: &JobGrant,
        _: WriteSeq,
        part: &Part,
    ) -> Result<(), Error> {
        let (Part::Progress(text) | Part::Done(text)) = part;
        if text == b"ignored" {
            let _ = transaction.batch_execute("INSERT INTO no_such_table VALUES (1)").await;
            return Ok(());
        }
        let (text, job) =
            (String::from_utf8_lossy(text).into_owned(), number_of(&grant.key).unwrap().cast_signed());
        let insert = "INSERT INTO lines SELECT $1::text, attempts FROM queue_job WHERE id = $2::bigint";
        transaction.execute(insert, &[&text, &job]).await.map(drop)
    }
}

/// A server with the tables of the queue and of the worker.
struct Scene {
    postgres: Postgres,
    _stage: Stage,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::new().unwrap();
        let postgres = Postgres::start(&stage).unwrap();
        let client = connect(&postgres.url()).await;
        resource::fence::migrate(&client).await.unwrap();
        client.batch_execute("CREATE TABLE lines (line text, attempts bigint)").await.unwrap();
        Self { postgres, _stage: stage }
    }

    fn worker(&self, heartbeat: bool) -> Worker {
        let (runtime, connecting) = (TokioRuntime::new(Handle::current()), Connecting(self.postgres.url()));
        let backoff = Backoff { base: Duration::from_millis(1), max: Duration::from_millis(2) };
        let lease = Duration::from_millis(300);
        let terms = Terms { lease, heartbeat, attempts_max: 2, backoff, ..Terms::default() };
        let key = LockKey::new("jobs", "mails").unwrap();
        let queue = PostgresJobs::new(key, runtime.clone(), connecting.clone());
        JobWorker::new(queue, PostgresJobRecord::new(runtime, connecting, lease, Lines), terms, ())
    }

    /// Returns the lines with their attempts, in their order.
    async fn lines(&self) -> Vec<String> {
        let client = connect(&self.postgres.url()).await;
        let query = "SELECT line || ' in attempt ' || attempts FROM lines ORDER BY line";
        client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Adds the job of the test.
async fn add(worker: &Worker, payload: &[u8]) {
    let queue = worker.queue();
    let deadline = queue.runtime().now() + Duration::from_secs(10);
    assert!(enqueue(queue, JOB, payload, Duration::ZERO, deadline).await.unwrap());
}

/// Works until a job is claimed, and returns its fate.
async fn fate<F>(worker: &mut Worker, mut work: impl FnMut(Task) -> F + Send) -> Fate
where
    F: Future<Output = Result<Part, String>> + Send,
{
    for _ in 0..1000 {
        match worker.work(&mut work).await.unwrap() {
            Worked::Job { fate, .. } => return fate,
            Worked::Wait { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            Worked::Empty => break,
        }
    }
    panic!("no job was claimed");
}

/// Does a job in two parts; fails the second one in the first attempt.
async fn in_two_parts(task: Task) -> Result<Part, String> {
    match (task.progress.as_deref(), task.attempts) {
        (None, _) => Ok(Part::Progress(b"1 of 2".to_vec())),
        (Some(b"1 of 2"), 1) => Err("no more paper".to_owned()),
        (Some(b"1 of 2"), _) => Ok(Part::Done(b"2 of 2".to_vec())),
        (Some(other), _) => Err(format!("unknown progress {other:?}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_commits_once_with_its_row() {
    let scene = Scene::new().await;
    let mut worker = scene.worker(true);
    add(&worker, b"to: ada").await;
    assert_eq!(fate(&mut worker, in_two_parts).await, Fate::Failed("no more paper".to_owned()));
    assert_eq!(fate(&mut worker, in_two_parts).await, Fate::Done);
    assert_eq!(scene.lines().await, ["1 of 2 in attempt 1", "2 of 2 in attempt 2"]);
    assert!(matches!(worker.work(in_two_parts).await.unwrap(), Worked::Empty));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_is_dead_after_its_last_attempt() {
    let scene = Scene::new().await;
    let mut worker = scene.worker(true);
    add(&worker, b"{\"to\":\"nobody\"}").await;
    let fail = |task: Task| async move { Err::<Part, _>(String::from_utf8(task.payload).unwrap()) };
    let error = r#"{"to":"nobody"}"#.to_owned();
    assert_eq!(fate(&mut worker, fail).await, Fate::Failed(error.clone()));
    assert_eq!(fate(&mut worker, fail).await, Fate::Dead(error));
    assert!(matches!(worker.work(fail).await.unwrap(), Worked::Empty));
}

/// PostgreSQL answers the commit of a transaction that has failed by a rollback, and no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_not_done_if_a_statement_has_failed_and_nobody_says_so() {
    let scene = Scene::new().await;
    let mut worker = scene.worker(true);
    add(&worker, b"to: ada").await;
    let ignores = |_: Task| async { Ok::<_, String>(Part::Done(b"ignored".to_vec())) };
    let worked = worker.work(ignores).await;
    assert!(!matches!(worked, Ok(Worked::Job { fate: Fate::Done, .. })), "{worked:?}");
    let done = |_: Task| async { Ok::<_, String>(Part::Done(b"done".to_vec())) };
    assert_eq!(fate(&mut worker, done).await, Fate::Done);
    assert_eq!(scene.lines().await, ["done in attempt 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_has_lost_its_claim_commits_nothing() {
    let scene = Scene::new().await;
    let (mut first, mut second) = (scene.worker(false), Some(scene.worker(true)));
    add(&first, b"to: ada").await;
    let slow = |_: Task| {
        let second = second.take();
        async move {
            // The lease ends meanwhile, and the second worker does the job.
            let done = |_: Task| async { Ok::<_, String>(Part::Done(b"second".to_vec())) };
            assert_eq!(fate(&mut second.unwrap(), done).await, Fate::Done);
            Ok::<_, String>(Part::Done(b"first".to_vec()))
        }
    };
    let worked = first.work(slow).await.unwrap();
    let is_refused = matches!(worked, Worked::Job { fate: Fate::Left(Ending::Refused), .. });
    assert!(is_refused, "{worked:?}");
    assert_eq!(scene.lines().await, ["second in attempt 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_connects_again_after_a_restart() {
    let mut scene = Scene::new().await;
    let mut worker = scene.worker(true);
    add(&worker, b"to: ada").await;
    scene.postgres.kill();
    let done = |_: Task| async { Ok::<_, String>(Part::Done(b"done".to_vec())) };
    assert!(worker.work(done).await.is_err());
    scene.postgres.restart().unwrap();
    // The queue has kept the job.
    assert_eq!(fate(&mut worker, done).await, Fate::Done);
    assert_eq!(scene.lines().await, ["done in attempt 1"]);
}
