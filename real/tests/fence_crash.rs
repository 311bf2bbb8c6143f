//! Crashes and partitions at every step of a transaction with the check of the fence: all of it stands or
//! nothing does, the fence never goes back, and a stale writer is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "connections run as tasks of their own")]

use std::time::Duration;

use dlock::FencingToken;
use fence::{Entry, OwnerToken, ResourceKey, Stop, check, migrate};
use futures_util::future::join;
use real::faults::{Direction, Link, Proxy};
use real::servers::{Postgres, Stage};
use serde_json::json;
use tokio_postgres::{Client, Error, NoTls};

/// The point of the transaction at which the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BeforeCheck,
    AfterCheck,
    AfterStatement,
    /// The commit is sent, and does not reach the server.
    CommitLost,
    /// The commit is done, and its answer does not reach the client.
    AnswerLost,
}

const STEPS: [Step; 5] =
    [Step::BeforeCheck, Step::AfterCheck, Step::AfterStatement, Step::CommitLost, Step::AnswerLost];

/// The cause of the loss.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// The connection is reset on both sides.
    Reset,
    /// The server ends the session.
    Terminated,
    /// The whole server crashes, and recovers from its log.
    ServerCrash,
}

struct Scene {
    postgres: Postgres,
    proxy: Proxy,
    _stage: Stage,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::new().unwrap();
        let postgres = Postgres::start(&stage).unwrap();
        let proxy = Proxy::start(&postgres.address()).await.unwrap();
        let scene = Self { postgres, proxy, _stage: stage };
        let client = scene.direct().await;
        migrate(&client).await.unwrap();
        let orders = "CREATE TABLE orders (id text PRIMARY KEY, token bigint NOT NULL)";
        client.batch_execute(orders).await.unwrap();
        scene
    }

    async fn direct(&self) -> Client {
        connect(&self.postgres.url()).await
    }

    /// Returns a client behind the proxy, and the server's process of it.
    async fn proxied(&self) -> (Client, i32) {
        let client = connect(&format!("postgresql://postgres@{}/postgres", self.proxy.address())).await;
        let process = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        (client, process)
    }

    /// Ends the session; returns once the server has ended it, so that no later statement can reach it.
    async fn strike(&mut self, cause: Cause, process: i32) {
        match cause {
            Cause::Reset => {
                self.proxy.reset();
                await_end(&self.direct().await, process).await;
            }
            Cause::Terminated => terminate(&self.direct().await, process).await,
            Cause::ServerCrash => self.postgres.restart().unwrap(),
        }
        // A cut link keeps the end of the connection from the client.
        self.proxy.reset();
    }

    /// Writes the order with token 34 and loses the connection at `step`.
    async fn lose_at(&mut self, step: Step, cause: Cause, key: &ResourceKey) -> Result<(), Stop<Error>> {
        let (mut client, process) = self.proxied().await;
        let mut transaction = client.transaction().await?;
        if step == Step::BeforeCheck {
            self.strike(cause, process).await;
        }
        check(&mut transaction, key, entry(34)).await?;
        if step == Step::AfterCheck {
            self.strike(cause, process).await;
        }
        transaction.execute(WRITE, &[&key.as_str(), &34_i64]).await?;
        match step {
            Step::CommitLost => self.proxy.set(Direction::ToServer, Link::Cut),
            Step::AnswerLost => self.proxy.set(Direction::ToClient, Link::Cut),
            _ => self.strike(cause, process).await,
        }
        let struck = async {
            if step == Step::AnswerLost {
                self.await_commit(key).await;
            }
            if matches!(step, Step::CommitLost | Step::AnswerLost) {
                self.strike(cause, process).await;
            }
        };
        let (committed, ()) = join(transaction.commit(), struck).await;
        self.proxy.set_both(Link::Open);
        Ok(committed?)
    }

    async fn await_commit(&self, key: &ResourceKey) {
        let client = self.direct().await;
        while state(&client, key).await.0 != 34 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

const WRITE: &str =
    "INSERT INTO orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET token = excluded.token";

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn terminate(client: &Client, process: i32) {
    client.execute("SELECT pg_terminate_backend($1)", &[&process]).await.unwrap();
    await_end(client, process).await;
}

/// Waits until a session has ended and its locks are released.
async fn await_end(client: &Client, process: i32) {
    let session = "SELECT FROM pg_stat_activity WHERE pid = $1";
    while !client.query(session, &[&process]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn entry(number: u64) -> Entry {
    let owner = OwnerToken::new(&format!("worker-{number}:28999649")).unwrap();
    Entry::new(FencingToken::new(number).unwrap()).owner(&owner).payload(json!({ "token": number }))
}

async fn write(client: &mut Client, key: &ResourceKey, number: u64) -> Result<(), Stop<Error>> {
    let mut transaction = client.transaction().await?;
    check(&mut transaction, key, entry(number)).await?;
    transaction.execute(WRITE, &[&key.as_str(), &(number as i64)]).await?;
    Ok(transaction.commit().await?)
}

/// Returns the token in the user's row, that of the fence, and the highest in the audit log.
async fn state(client: &Client, key: &ResourceKey) -> (i64, i64, i64) {
    let query = "SELECT orders.token, f.token, (SELECT max(token) FROM fence_audit WHERE resource_id = $1) \
                 FROM orders, fence_position f WHERE id = $1 AND resource_id = $1";
    let row = client.query_one(query, &[&key.as_str()]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_stands_whole_or_not_at_all() {
    let mut scene = Scene::new().await;
    for cause in [Cause::Reset, Cause::Terminated, Cause::ServerCrash] {
        for step in STEPS {
            let key = ResourceKey::new(&format!("orders:{cause:?}-{step:?}")).unwrap();
            write(&mut scene.direct().await, &key, 33).await.unwrap();
            let lost = scene.lose_at(step, cause, &key).await;
            assert!(matches!(lost, Err(Stop::Failed(_))), "{key}: {lost:?}");

            let mut client = scene.direct().await;
            let stands = step == Step::AnswerLost;
            let expected = if stands { 34 } else { 33 };
            assert_eq!(state(&client, &key).await, (expected, expected, expected), "{key}");
            let stale = write(&mut client, &key, 32).await;
            assert!(matches!(stale, Err(Stop::Refused(_))), "{key}: {stale:?}");

            // The writer does not know what stands: it runs its transaction again.
            let again = write(&mut client, &key, 34).await;
            match stands {
                true => assert!(matches!(again, Err(Stop::Repeated(_))), "{key}: {again:?}"),
                false => assert!(again.is_ok(), "{key}: {again:?}"),
            }
            assert_eq!(state(&client, &key).await, (34, 34, 34), "{key}");
            let stale = write(&mut client, &key, 33).await;
            assert!(matches!(stale, Err(Stop::Refused(_))), "{key}: {stale:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_writer_gives_the_row_up_when_its_session_ends() {
    let scene = Scene::new().await;
    let key = ResourceKey::new("orders:42").unwrap();
    write(&mut scene.direct().await, &key, 33).await.unwrap();
    let (mut client, process) = scene.proxied().await;
    let mut transaction = client.transaction().await.unwrap();
    check(&mut transaction, &key, entry(34)).await.unwrap();
    scene.proxy.set_both(Link::Cut);

    // The newer holder waits for the row.
    let mut newer = scene.direct().await;
    let newer = tokio::spawn({
        let key = key.clone();
        async move { write(&mut newer, &key, 35).await }
    });
    let control = scene.direct().await;
    let waits = "SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))";
    while control.query(waits, &[&process]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(state(&control, &key).await, (33, 33, 33));
    // As idle_in_transaction_session_timeout or a TCP keepalive does.
    terminate(&control, process).await;
    newer.await.unwrap().unwrap();

    scene.proxy.set_both(Link::Open);
    let late = transaction.execute(WRITE, &[&key.as_str(), &34_i64]).await;
    assert!(late.is_err(), "{late:?}");
    drop(transaction);
    assert_eq!(state(&control, &key).await, (35, 35, 35));
    let stale = write(&mut scene.direct().await, &key, 34).await;
    assert!(matches!(stale, Err(Stop::Refused(_))), "{stale:?}");
}
