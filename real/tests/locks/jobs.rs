//! A job queue in a table of PostgreSQL: each job is committed once, by the worker with the latest claim.

use std::time::Duration;

use dlock::Backoff;
use fence::{Failed, Job, JobQueue, JobStop, PostgresTransaction};
use real::servers::{Postgres, Stage};
use serde_json::{Value, json};
use sqlx::Connection as _;
use tokio_postgres::{Client, NoTls};

/// A server with the tables of the queue and of the user.
struct Scene {
    postgres: Postgres,
    client: Client,
    _stage: Stage,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::new().unwrap();
        let postgres = Postgres::start(&stage).unwrap();
        let client = connect(&postgres.url()).await;
        fence::migrate(&client).await.unwrap();
        client.batch_execute("CREATE TABLE mails (job bigint NOT NULL, line text NOT NULL)").await.unwrap();
        Self { postgres, client, _stage: stage }
    }

    async fn rows(&self, query: &str) -> Vec<String> {
        self.client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn enqueue(&mut self, queue: &JobQueue, payload: Value) -> u64 {
        let mut tx = self.client.transaction().await.unwrap();
        let id = queue.enqueue(&mut tx, &payload, Duration::ZERO).await.unwrap();
        tx.commit().await.unwrap();
        id
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn queue(lease_ms: u64) -> JobQueue {
    let backoff = Backoff { base: Duration::from_millis(1), max: Duration::from_millis(2) };
    let lease = Duration::from_millis(lease_ms);
    JobQueue { lease, attempts_max: 2, backoff, ..JobQueue::new("mails") }
}

async fn claim(client: &mut Client, queue: &JobQueue, owner: &str) -> Option<Job> {
    let mut tx = client.transaction().await.unwrap();
    let job = queue.claim(&mut tx, owner).await.unwrap();
    tx.commit().await.unwrap();
    job
}

/// Completes the job with a row of the user, in one transaction.
async fn complete(
    client: &mut Client,
    queue: &JobQueue,
    job: &Job,
) -> Result<(), JobStop<tokio_postgres::Error>> {
    let mut tx = client.transaction().await.unwrap();
    queue.complete(&mut tx, job).await?;
    write_mail(&mut tx, job, "done").await;
    tx.commit().await.unwrap();
    Ok(())
}

async fn write_mail(tx: &mut tokio_postgres::Transaction<'_>, job: &Job, line: &str) {
    let insert = "INSERT INTO mails VALUES ($1, $2)";
    tx.execute(insert, &[&job.id.cast_signed(), &line]).await.unwrap();
}

/// Claims as soon as a job is ready.
async fn claim_later(client: &mut Client, queue: &JobQueue, owner: &str) -> Job {
    for _ in 0..500 {
        if let Some(job) = claim(client, queue, owner).await {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no job was ready within 5 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_the_jobs_and_commit_each_once() {
    let mut scene = Scene::new().await;
    let queue = queue(30_000);
    for number in 0..40 {
        scene.enqueue(&queue, json!({ "to": number })).await;
    }
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (url, queue) = (scene.postgres.url(), queue.clone());
            tokio::spawn(async move {
                let mut client = connect(&url).await;
                let mut tokens = Vec::new();
                while let Some(job) = claim(&mut client, &queue, &format!("worker-{worker}")).await {
                    tokens.push(job.token.as_u64());
                    complete(&mut client, &queue, &job).await.unwrap();
                }
                tokens
            })
        })
        .collect();
    let mut tokens = Vec::new();
    for worker in workers {
        let own = worker.await.unwrap();
        assert!(own.is_sorted(), "{own:?}");
        tokens.extend(own);
    }
    tokens.sort_unstable();
    assert_eq!(tokens, (1..=40).collect::<Vec<u64>>());
    assert_eq!(scene.rows("SELECT DISTINCT job::text FROM mails").await.len(), 40);
    assert_eq!(scene.rows("SELECT job::text FROM mails").await.len(), 40);
    assert_eq!(scene.rows("SELECT DISTINCT state FROM queue_job").await, ["done"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_pauses_past_its_lease_is_superseded() {
    let mut scene = Scene::new().await;
    let queue = queue(200);
    let id = scene.enqueue(&queue, json!({})).await;
    let mut other = connect(&scene.postgres.url()).await;
    let first = claim(&mut scene.client, &queue, "first").await.unwrap();
    assert_eq!(claim(&mut other, &queue, "second").await, None, "the lease keeps the second one away");
    let second = claim_later(&mut other, &queue, "second").await;
    assert_eq!((second.id, second.attempts), (id, 2));
    assert!(second.token > first.token);

    // Each step of the first one is refused, and its transaction commits nothing.
    let mut tx = scene.client.transaction().await.unwrap();
    let stop = queue.complete(&mut tx, &first).await.unwrap_err();
    assert!(matches!(stop, JobStop::Superseded { id: of, .. } if of == id), "{stop}");
    assert!(tx.execute("INSERT INTO mails VALUES (1, 'late')", &[]).await.is_err());
    drop(tx);
    for step in 0..3 {
        let mut tx = scene.client.transaction().await.unwrap();
        let stop = match step {
            0 => queue.heartbeat(&mut tx, &first).await.unwrap_err(),
            1 => queue.advance(&mut tx, &first, &json!(1)).await.unwrap_err(),
            _ => queue.fail(&mut tx, &first, "late", [0; 8]).await.map(drop).unwrap_err(),
        };
        assert!(matches!(stop, JobStop::Superseded { .. }), "{step}: {stop}");
    }
    complete(&mut other, &queue, &second).await.unwrap();
    let twice = complete(&mut other, &queue, &second).await.unwrap_err();
    assert!(matches!(twice, JobStop::Superseded { .. }), "{twice}");
    assert_eq!(scene.rows("SELECT line FROM mails").await, ["done"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_keeps_the_claim_and_its_end_does_not_hinder_the_commit() {
    let mut scene = Scene::new().await;
    let queue = queue(300);
    scene.enqueue(&queue, json!({})).await;
    let mut other = connect(&scene.postgres.url()).await;
    let job = claim(&mut scene.client, &queue, "first").await.unwrap();
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut tx = scene.client.transaction().await.unwrap();
        queue.heartbeat(&mut tx, &job).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(claim(&mut other, &queue, "second").await, None);
    }
    // The lease is over, and nobody has claimed the job since.
    tokio::time::sleep(Duration::from_millis(400)).await;
    complete(&mut scene.client, &queue, &job).await.unwrap();
    assert_eq!(claim(&mut other, &queue, "second").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_goes_on_from_its_progress() {
    let mut scene = Scene::new().await;
    let queue = queue(200);
    scene.enqueue(&queue, json!({ "items": 4 })).await;
    let first = claim(&mut scene.client, &queue, "first").await.unwrap();
    for done in 1..=2 {
        let mut tx = scene.client.transaction().await.unwrap();
        queue.advance(&mut tx, &first, &json!({ "done": done })).await.unwrap();
        write_mail(&mut tx, &first, &format!("item {done}")).await;
        tx.commit().await.unwrap();
    }
    // A part that is rolled back does not count.
    let mut tx = scene.client.transaction().await.unwrap();
    queue.advance(&mut tx, &first, &json!({ "done": 3 })).await.unwrap();
    write_mail(&mut tx, &first, "item 3").await;
    drop(tx);
    let mut other = connect(&scene.postgres.url()).await;
    let second = claim_later(&mut other, &queue, "second").await;
    assert_eq!(second.progress, Some(json!({ "done": 2 })));
    assert_eq!(scene.rows("SELECT line FROM mails ORDER BY line").await, ["item 1", "item 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_is_retried_then_dead_and_requeued() {
    let mut scene = Scene::new().await;
    let queue = queue(30_000);
    let id = scene.enqueue(&queue, json!({})).await;
    for attempt in 1..=2 {
        let job = claim_later(&mut scene.client, &queue, "worker").await;
        assert_eq!((job.id, job.attempts), (id, attempt));
        let mut tx = scene.client.transaction().await.unwrap();
        let failed = queue.fail(&mut tx, &job, "no such address", [0; 8]).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(failed == Failed::Dead, attempt == 2, "{failed:?}");
    }
    assert_eq!(claim(&mut scene.client, &queue, "worker").await, None);
    let state = "SELECT state || ': ' || last_error FROM queue_job";
    assert_eq!(scene.rows(state).await, ["dead: no such address"]);
    for is_dead in [true, false] {
        let mut tx = scene.client.transaction().await.unwrap();
        assert_eq!(queue.requeue(&mut tx, id).await.unwrap(), is_dead);
        tx.commit().await.unwrap();
    }
    let job = claim(&mut scene.client, &queue, "worker").await.unwrap();
    assert_eq!(job.attempts, 1);
    complete(&mut scene.client, &queue, &job).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_kills_its_workers_is_dead_after_its_last_attempt() {
    let mut scene = Scene::new().await;
    let queue = queue(50);
    scene.enqueue(&queue, json!({})).await;
    for attempt in 1..=2 {
        // The worker dies here: it neither completes nor fails.
        assert_eq!(claim_later(&mut scene.client, &queue, "worker").await.attempts, attempt);
    }
    let mut other = connect(&scene.postgres.url()).await;
    for _ in 0..500 {
        assert_eq!(claim(&mut other, &queue, "worker").await, None);
        if scene.rows("SELECT state FROM queue_job").await == ["dead"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let state = "SELECT state || ': ' || last_error FROM queue_job";
    assert_eq!(scene.rows(state).await, ["dead: no answer from its worker in attempt 2"]);
}

async fn whole_life<T: PostgresTransaction>(tx: &mut T, queue: &JobQueue) {
    let id = queue.enqueue(tx, &json!({ "to": "ada" }), Duration::ZERO).await.unwrap();
    let job = queue.claim(tx, "worker").await.unwrap().unwrap();
    assert_eq!((job.id, job.attempts, job.payload.clone()), (id, 1, json!({ "to": "ada" })));
    queue.heartbeat(tx, &job).await.unwrap();
    queue.advance(tx, &job, &json!([1])).await.unwrap();
    queue.complete(tx, &job).await.unwrap();
    assert_eq!(queue.claim(tx, "worker").await.unwrap(), None);
    let later = queue.enqueue(tx, &json!({}), Duration::from_secs(3600)).await.unwrap();
    assert!(later > id);
    assert_eq!(queue.claim(tx, "worker").await.unwrap(), None, "it is not due for an hour");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_clients_run_the_whole_life_of_a_job() {
    let mut scene = Scene::new().await;
    let mut tx = scene.client.transaction().await.unwrap();
    whole_life(&mut tx, &queue(1000)).await;
    drop(tx);
    let mut sqlx = sqlx::PgConnection::connect(&scene.postgres.url()).await.unwrap();
    let mut tx = sqlx.begin().await.unwrap();
    whole_life(&mut tx, &queue(1000)).await;
}
