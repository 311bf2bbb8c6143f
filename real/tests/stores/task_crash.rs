//! Jobs and ticks in tables of PostgreSQL when the worker's connection is lost at any request: the task and
//! its rows are committed together, and it runs again only if its commit was not acknowledged.

use std::error::Error;
use std::time::Duration;

use fence::cron::Tick;
use fence::{
    Entry, Job, JobQueue, OwnerToken, ResourceKey, Stop, WriteSeq, begin_tick, claim_ticks, finish_tick,
};
use real::servers::{Postgres, Stage};
use serde_json::json;
use tokio_postgres::{Client, NoTls, Transaction};

use crate::relay::{Lost, Relay};

/// A server with the tables of the fence and of the user, and a port that loses messages.
struct Scene {
    postgres: Postgres,
    relay: Relay,
    client: Client,
    _stage: Stage,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::new().unwrap();
        let postgres = Postgres::start(&stage).unwrap();
        let relay = Relay::start(postgres.address()).await;
        let client = connect(&postgres.url()).await;
        fence::migrate(&client).await.unwrap();
        client.batch_execute("CREATE TABLE lines (task text NOT NULL, line text NOT NULL)").await.unwrap();
        Self { postgres, relay, client, _stage: stage }
    }

    /// Connects a worker through the relay; returns the number of its session, too.
    async fn worker(&self) -> (Client, i32) {
        let url = self.postgres.url().replace(&self.postgres.address(), self.relay.address());
        let client = connect(&url).await;
        let session = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        (client, session)
    }

    /// Waits until the server has ended a session: until then it may hold locks.
    async fn await_end(&self, session: i32) {
        let query = "SELECT 1 FROM pg_stat_activity WHERE pid = $1";
        while self.client.query_opt(query, &[&session]).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn lines(&self, task: &str) -> Vec<String> {
        let query = "SELECT line FROM lines WHERE task = $1 ORDER BY line";
        self.client.query(query, &[&task]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// Returns the state of a job and the number of its claims.
    async fn job(&self, id: u64) -> (String, i64) {
        let query = "SELECT state, attempts FROM queue_job WHERE id = $1";
        let row = self.client.query_one(query, &[&id.cast_signed()]).await.unwrap();
        (row.get(0), row.get(1))
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn write(tx: &Transaction<'_>, task: &str, line: &str) -> Result<(), tokio_postgres::Error> {
    tx.execute("INSERT INTO lines VALUES ($1, $2)", &[&task, &line]).await.map(drop)
}

/// Does a claimed job in two transactions: its first part unless that is done, then its end.
async fn work(client: &mut Client, queue: &JobQueue, job: &Job) -> Result<(), Box<dyn Error>> {
    let task = job.id.to_string();
    let mut tx = client.transaction().await?;
    queue.heartbeat(&mut tx, job).await?;
    if job.progress.is_none() {
        queue.advance(&mut tx, job, &json!({ "parts": 1 })).await?;
        write(&tx, &task, "a part").await?;
    }
    tx.commit().await?;
    let mut tx = client.transaction().await?;
    queue.complete(&mut tx, job).await?;
    write(&tx, &task, "the end").await?;
    Ok(tx.commit().await?)
}

async fn claim(client: &mut Client, queue: &JobQueue) -> Result<Option<Job>, Box<dyn Error>> {
    let mut tx = client.transaction().await?;
    let job = queue.claim(&mut tx, "worker").await?;
    tx.commit().await?;
    Ok(job)
}

/// Claims a job and does it.
async fn do_one(client: &mut Client, queue: &JobQueue) -> Result<(), Box<dyn Error>> {
    match claim(client, queue).await? {
        Some(job) => work(client, queue, &job).await,
        None => Err("there is no job".into()),
    }
}

/// Claims and does the job of a worker that is gone, once its lease is over; nothing if the job is done.
async fn take_over(scene: &mut Scene, queue: &JobQueue, id: u64) {
    while scene.job(id).await.0 != "done" {
        if let Some(job) = claim(&mut scene.client, queue).await.unwrap() {
            assert_eq!(job.id, id);
            work(&mut scene.client, queue, &job).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(claim(&mut scene.client, queue).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_runs_again_only_if_its_commit_was_not_acknowledged() {
    let mut scene = Scene::new().await;
    let queue = JobQueue { lease: Duration::from_millis(100), ..JobQueue::new("mails") };
    for lost in [Lost::Request, Lost::Answer] {
        let mut done = Vec::new();
        for requests in 0.. {
            let mut tx = scene.client.transaction().await.unwrap();
            let id = queue.enqueue(&mut tx, &json!({}), Duration::ZERO).await.unwrap();
            tx.commit().await.unwrap();
            let (mut worker, session) = scene.worker().await;
            scene.relay.lose_after(requests, lost);
            let ended = do_one(&mut worker, &queue).await;
            let was_lost = scene.relay.has_lost();
            assert_eq!(ended.is_err(), was_lost, "{lost:?} {requests}: {ended:?}");
            drop(worker);
            scene.await_end(session).await;
            let (state, attempts) = scene.job(id).await;
            take_over(&mut scene, &queue, id).await;
            assert_eq!(scene.lines(&id.to_string()).await, ["a part", "the end"], "{lost:?} {requests}");
            if !was_lost {
                assert_eq!((state.as_str(), scene.job(id).await.1), ("done", 1));
                break;
            }
            let claims = scene.job(id).await.1 - attempts;
            assert_eq!(claims == 0, state == "done", "{lost:?} {requests}: {claims} more claims");
            done.push(state == "done");
        }
        only_the_last(&done, lost);
    }
}

/// Checks that the task was done only where the answer to the last request, its commit, was lost.
fn only_the_last(done: &[bool], lost: Lost) {
    let (commit, others) = done.split_last().unwrap();
    assert!(others.len() >= 6, "{others:?}");
    assert!(others.iter().all(|done| !done), "{lost:?}: {others:?}");
    assert_eq!(*commit, lost == Lost::Answer);
}

fn entry(token: u64, number: u64) -> Entry {
    let owner = OwnerToken::new(&format!("runner-{token}:1234")).unwrap();
    Entry::new(token.to_string().parse().unwrap()).owner(&owner).seq(WriteSeq::new(number).unwrap())
}

/// Begins and finishes `tick` with a row of the user, if it is not done; returns whether it ran.
async fn run_tick(
    client: &mut Client,
    cron: &ResourceKey,
    token: u64,
    tick: Tick,
) -> Result<bool, Box<dyn Error>> {
    let mut tx = client.transaction().await?;
    if claim_ticks(&mut tx, cron, entry(token, 1)).await?.last == Some(tick) {
        return Ok(false);
    }
    begin_tick(&mut tx, cron, entry(token, 2), tick).await?;
    tx.commit().await?;
    finish(client, cron, token, tick).await
}

async fn finish(
    client: &mut Client,
    cron: &ResourceKey,
    token: u64,
    tick: Tick,
) -> Result<bool, Box<dyn Error>> {
    let mut tx = client.transaction().await?;
    match finish_tick(&mut tx, cron, entry(token, 3), tick).await {
        // An earlier commit, whose answer was lost.
        Err(Stop::Repeated(_)) => return Ok(false),
        finished => finished?,
    };
    write(&tx, cron.as_str(), "the end").await?;
    tx.commit().await?;
    Ok(true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_runs_again_only_if_its_commit_was_not_acknowledged() {
    let mut scene = Scene::new().await;
    let tick = Tick::new(60_000);
    for lost in [Lost::Request, Lost::Answer] {
        let mut done = Vec::new();
        for requests in 0.. {
            let cron = ResourceKey::new(&format!("cron:{lost:?}-{requests}")).unwrap();
            let (mut runner, session) = scene.worker().await;
            scene.relay.lose_after(requests, lost);
            let ended = run_tick(&mut runner, &cron, 3, tick).await;
            let was_lost = scene.relay.has_lost();
            assert_eq!(ended.is_err(), was_lost, "{cron}: {ended:?}");
            drop(runner);
            scene.await_end(session).await;
            let is_done = scene.lines(cron.as_str()).await == ["the end"];
            // The same runner finds out what stands; the next holder runs the tick only if it is not done.
            if is_done {
                assert!(!finish(&mut scene.client, &cron, 3, tick).await.unwrap(), "{cron}");
            }
            let ran = run_tick(&mut scene.client, &cron, 5, tick).await.unwrap();
            assert_eq!(ran, !is_done, "{cron}");
            assert_eq!(scene.lines(cron.as_str()).await, ["the end"], "{cron}");
            if !was_lost {
                break;
            }
            done.push(is_done);
        }
        only_the_last(&done, lost);
    }
}
