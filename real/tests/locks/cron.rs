//! A cron on live servers: each tick is committed once, whatever the runners, their clocks and their pauses
//! do. With the resource as the guarded side on each lock system, and in transactions on PostgreSQL.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use dlock::{AnyBackend, Lock, LockKey, Options, TokioRuntime};
use fence::cron::{Every, Missed, Policy, Seen, Tick, Ticks};
use fence::{
    Entry, OwnerToken, PostgresTicks, Refusal, ResourceKey, Stop, TickStatements, WriteSeq, begin_tick,
    claim_ticks, finish_tick,
};
use real::servers::{EtcdCluster, Persistence, Postgres, Redis, Stage, ZooKeeper};
use resource::client::Client;
use resource::cron::{Cron, Fired, PostgresTickRecord, ResourceTicks, Runner};
use resource::http::{App, Config, serve_connection};
use resource::postgres::ConnectPostgres;
use resource::store::MemoryStore;
use resource::worker::Ending;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::{NoTls, Transaction};

const PERIOD_MS: u64 = 1000;

/// Starts a resource in memory; returns its address.
async fn resource() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let app = App::new(Arc::new(MemoryStore::new()), Config::default());
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(stream, &app));
        }
    });
    address
}

fn cron(id: &str, missed: Missed) -> Cron<Every> {
    let schedule = Every::new(Duration::from_millis(PERIOD_MS), Duration::ZERO).unwrap();
    let policy = Policy { late_max: Duration::from_millis(PERIOD_MS - 1), missed };
    Cron::new(LockKey::new("cron", id).unwrap(), schedule, policy)
}

async fn lock(url: &str, ttl: Duration) -> Lock<AnyBackend<TokioRuntime>> {
    Lock::connect(url, Options::new(ttl)).await.unwrap()
}

/// Fires at this time of a clock that the test sets.
async fn fire<T: Ticks>(
    runner: &mut Runner<AnyBackend<TokioRuntime>, T, Every>,
    now_ms: u64,
    work: Duration,
) -> Fired {
    let worked = |tick: Tick| async move {
        tokio::time::sleep(work).await;
        format!("of {tick}").into_bytes()
    };
    runner.fire(|| now_ms, worked).await.unwrap()
}

fn ticks(numbers: &[u64]) -> Vec<Tick> {
    numbers.iter().map(|number| Tick::new(number * PERIOD_MS)).collect()
}

/// Two runners fire at once, five times, by clocks that are apart: each tick is committed by one of them.
async fn each_tick_is_committed_once(url: &str) {
    let address = resource().await;
    let committed = Arc::new(AtomicU64::new(0));
    let runs = [0_i64, -400].map(|behind_ms| {
        let (url, address, committed) = (url.to_owned(), address.clone(), Arc::clone(&committed));
        async move {
            let client = Client::new(TokioRuntime::new(Handle::current()), &address);
            let lock = lock(&url, Duration::from_secs(3)).await;
            let mut runner = Runner::new(lock, ResourceTicks::new(client), cron("both", Missed::Latest), ());
            for number in 10..15_u64 {
                let now_ms = (number * PERIOD_MS + 500).saturating_add_signed(behind_ms);
                let fired = fire(&mut runner, now_ms, Duration::from_millis(20)).await;
                assert_eq!(fired.ending, Ending::Done, "{url}: {:?}", fired.error);
                committed.fetch_add(fired.ran.len() as u64, Ordering::SeqCst);
            }
        }
    });
    let [one, two] = runs.map(tokio::spawn);
    one.await.unwrap();
    two.await.unwrap();
    // One may be far ahead of the other: then the other's ticks are done, and none is run again.
    assert_eq!(committed.load(Ordering::SeqCst), 5, "{url}");
}

fn resource_ticks(address: &str) -> ResourceTicks<TokioRuntime> {
    ResourceTicks::new(Client::new(TokioRuntime::new(Handle::current()), address))
}

/// A runner outlives its lease while it works: the next one runs the tick, and the first one is refused.
async fn a_late_runner_is_refused(url: &str) {
    let address = resource().await;
    let (works, mut first_works) = tokio::sync::mpsc::unbounded_channel();
    let (wake, woken) = mpsc::channel();
    let first = thread::spawn({
        let (url, address) = (url.to_owned(), address.clone());
        move || run_paused(&url, &address, works, woken)
    });
    first_works.recv().await.unwrap();
    let lock = lock(url, Duration::from_secs(3)).await;
    let mut second = Runner::new(lock, resource_ticks(&address), cron("late", Missed::Latest), ());
    let fired = fire(&mut second, 10_500, Duration::ZERO).await;
    assert_eq!(fired.ran, ticks(&[10]), "{url}: {:?}", fired.error);
    wake.send(()).unwrap();
    let fired = first.join().unwrap();
    assert_eq!((fired.ran, fired.ending), (vec![], Ending::Refused), "{url}");
}

/// Fires once, and pauses in its work from the message that it sends to the one that it gets. etcd and
/// ZooKeeper keep a lease for as long as its client answers them: so the thread blocks, which stops the
/// client's tasks as well, like a process that is stopped.
fn run_paused(url: &str, address: &str, works: UnboundedSender<()>, woken: mpsc::Receiver<()>) -> Fired {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let late = Cron { renew: None, check: false, ..cron("late", Missed::Latest) };
        let mut runner =
            Runner::new(lock(url, Duration::from_secs(1)).await, resource_ticks(address), late, ());
        let worked = move |tick: Tick| {
            works.send(()).unwrap();
            woken.recv().unwrap();
            async move { format!("late {tick}").into_bytes() }
        };
        let handle = runner.acquire().await.unwrap();
        runner.run(handle, || 10_500, worked).await.unwrap()
    })
}

/// The policy decides which ticks are run after a time without a runner.
async fn missed_ticks_are_policy(url: &str) {
    let address = resource().await;
    for (id, missed, run, skipped) in [
        ("skip", Missed::Skip, &[15][..], Some(14)),
        ("latest", Missed::Latest, &[15], Some(14)),
        ("all", Missed::All { limit: 2 }, &[13, 14, 15], Some(12)),
        ("every", Missed::All { limit: 9 }, &[11, 12, 13, 14, 15], None),
    ] {
        let client = Client::new(TokioRuntime::new(Handle::current()), &address);
        let lock = lock(url, Duration::from_secs(3)).await;
        let mut runner = Runner::new(lock, ResourceTicks::new(client), cron(id, missed), ());
        assert_eq!(fire(&mut runner, 10_500, Duration::ZERO).await.ran, ticks(&[10]));
        let fired = fire(&mut runner, 15_500, Duration::ZERO).await;
        assert_eq!((fired.ran, fired.skipped), (ticks(run), skipped.map(|to| Tick::new(to * PERIOD_MS))));
        // A clock that is set back has nothing due.
        assert_eq!(fire(&mut runner, 12_500, Duration::ZERO).await.ran, []);
    }
}

#[test]
fn ticks_are_committed_once_under_each_lock() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    let majority: Vec<_> = three.iter().map(Redis::address).collect();
    let redis = format!("redis://{}", redis.address());
    let redlock = format!("redis://{}", majority.join(","));
    let etcd = format!("etcd://{}", etcd.addresses()[0]);
    let zookeeper = format!("zookeeper://{}", zookeeper.address());
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(async {
        for url in [&redis, &redlock, &etcd, &zookeeper] {
            each_tick_is_committed_once(url).await;
            a_late_runner_is_refused(url).await;
        }
        missed_ticks_are_policy(&redis).await;
    });
}

/// Writes a row for each tick.
#[derive(Clone)]
struct Rows;

impl TickStatements for Rows {
    async fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        tick: Tick,
        result: &[u8],
    ) -> Result<(), tokio_postgres::Error> {
        let result = String::from_utf8_lossy(result);
        let insert = "INSERT INTO reports (tick, result) VALUES ($1, $2)";
        transaction.execute(insert, &[&tick.as_u64().cast_signed(), &&*result]).await.map(drop)
    }
}

async fn postgres_client(postgres: &Postgres) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn rows(client: &tokio_postgres::Client, query: &str) -> Vec<String> {
    client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// PostgreSQL is the guarded side, with the lock on Redis: its clock decides, and each tick's row is there
/// once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ticks_and_their_rows_commit_together_on_postgres() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let url = format!("redis://{}", redis.address());
    let client = postgres_client(&postgres).await;
    fence::migrate(&client).await.unwrap();
    client.batch_execute("CREATE TABLE reports (tick bigint NOT NULL, result text NOT NULL)").await.unwrap();
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let (url, postgres) = (url.clone(), postgres.url());
            tokio::spawn(async move {
                let (client, connection) = tokio_postgres::connect(&postgres, NoTls).await.unwrap();
                tokio::spawn(connection);
                let lock = lock(&url, Duration::from_secs(3)).await;
                let ticks = PostgresTicks::new(client, Rows);
                let mut runner = Runner::new(lock, ticks, cron("postgres", Missed::All { limit: 9 }), ());
                let (admin, mut ran) = (tokio_postgres_client(postgres).await, 0);
                while rows(&admin, "SELECT tick::text FROM reports").await.len() < 3 {
                    // The clock of the runner does not matter.
                    let fired = fire(&mut runner, 0, Duration::from_millis(50)).await;
                    assert_eq!(fired.ending, Ending::Done, "{:?}", fired.error);
                    ran += fired.ran.len();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                ran
            })
        })
        .collect();
    let mut ran = 0;
    for run in runs {
        ran += run.await.unwrap();
    }
    let committed = rows(&client, "SELECT tick::text FROM reports ORDER BY tick").await;
    let distinct = rows(&client, "SELECT DISTINCT tick::text FROM reports").await;
    assert!(ran >= 3 && committed.len() == ran && distinct.len() == ran, "{ran}: {committed:?}");
    let states = rows(&client, "SELECT DISTINCT state FROM cron_tick").await;
    assert_eq!(states, ["done"]);
}

/// Fails, and ignores that.
struct Ignores;

impl TickStatements for Ignores {
    async fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        _: Tick,
        _: &[u8],
    ) -> Result<(), tokio_postgres::Error> {
        let _ = transaction.batch_execute("INSERT INTO no_such_table VALUES (1)").await;
        Ok(())
    }
}

/// PostgreSQL answers the commit of a transaction that has failed by a rollback, and no error.
#[tokio::test]
async fn a_tick_is_not_done_if_a_statement_has_failed_and_nobody_says_so() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let admin = postgres_client(&postgres).await;
    fence::migrate(&admin).await.unwrap();
    let lock = lock(&format!("redis://{}", redis.address()), Duration::from_secs(3)).await;
    let ticks = PostgresTicks::new(postgres_client(&postgres).await, Ignores);
    let mut runner = Runner::new(lock, ticks, cron("postgres", Missed::All { limit: 9 }), ());
    let fired = loop {
        let fired = fire(&mut runner, 0, Duration::ZERO).await;
        if !fired.ran.is_empty() || fired.error.is_some() {
            break fired;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(fired.ran.is_empty() && fired.ending != Ending::Done, "{fired:?}");
    assert!(rows(&admin, "SELECT state FROM cron_tick WHERE state = 'done'").await.is_empty());
}

struct Connecting(String);

impl ConnectPostgres for Connecting {
    async fn connect(&self) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.0, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// The connection of the last firing is gone, which costs the next one nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cron_goes_on_after_a_restart_of_postgres() {
    let stage = Stage::new().unwrap();
    let mut postgres = Postgres::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let admin = postgres_client(&postgres).await;
    fence::migrate(&admin).await.unwrap();
    admin.batch_execute("CREATE TABLE reports (tick bigint NOT NULL, result text NOT NULL)").await.unwrap();
    let lock = lock(&format!("redis://{}", redis.address()), Duration::from_secs(3)).await;
    let runtime = TokioRuntime::new(Handle::current());
    let ticks = PostgresTickRecord::new(runtime, Connecting(postgres.url()), Rows);
    let mut runner = Runner::new(lock, ticks, cron("postgres", Missed::All { limit: 9 }), ());
    assert_eq!(fire(&mut runner, 0, Duration::ZERO).await.error, None);
    postgres.kill();
    postgres.restart().unwrap();
    let fired = fire(&mut runner, 0, Duration::ZERO).await;
    assert_eq!((fired.ending, fired.error), (Ending::Done, None));
}

fn entry(token: u64, number: u64) -> Entry {
    let owner = OwnerToken::new(&format!("runner-{token}:1234")).unwrap();
    Entry::new(token.to_string().parse().unwrap()).owner(&owner).seq(WriteSeq::new(number).unwrap())
}

/// The three steps on each client: a tick is running, then taken over, then done for good.
macro_rules! steps {
    ($name:ident, $connect:expr, $begin:ident) => {
        #[tokio::test]
        async fn $name() {
            let stage = Stage::new().unwrap();
            let postgres = Postgres::start(&stage).unwrap();
            let admin = postgres_client(&postgres).await;
            fence::migrate(&admin).await.unwrap();
            // The tables may be there.
            fence::migrate(&admin).await.unwrap();
            let mut client = $connect(postgres.url()).await;
            let (cron, tick) = (ResourceKey::new("cron:bills").unwrap(), Tick::new(60_000));

            let mut tx = client.$begin().await.unwrap();
            let Seen { last, now_ms } = claim_ticks(&mut tx, &cron, entry(3, 1)).await.unwrap();
            assert!(last.is_none() && now_ms.unwrap() > 1_700_000_000_000, "{last:?} {now_ms:?}");
            assert_eq!(begin_tick(&mut tx, &cron, entry(3, 2), tick).await.unwrap(), 1);
            tx.commit().await.unwrap();

            // The runner is gone, and the next holder takes the tick over.
            let mut tx = client.$begin().await.unwrap();
            assert_eq!(claim_ticks(&mut tx, &cron, entry(5, 1)).await.unwrap().last, None);
            assert_eq!(begin_tick(&mut tx, &cron, entry(5, 2), tick).await.unwrap(), 2);
            tx.commit().await.unwrap();

            // It comes back.
            let mut tx = client.$begin().await.unwrap();
            let late = finish_tick(&mut tx, &cron, entry(3, 3), tick).await.unwrap_err();
            assert!(matches!(late, Stop::Refused(Refusal::Stale { .. })), "{late}");
            drop(tx);
            // Rolled back, so not done.
            let mut tx = client.$begin().await.unwrap();
            assert_eq!(finish_tick(&mut tx, &cron, entry(5, 3), tick).await.unwrap(), 2);
            drop(tx);
            assert_eq!(rows(&admin, "SELECT state FROM cron_tick").await, ["running"]);

            let mut tx = client.$begin().await.unwrap();
            assert_eq!(finish_tick(&mut tx, &cron, entry(5, 3), tick).await.unwrap(), 2);
            tx.commit().await.unwrap();
            // Its answer was lost: the same again, by a later transaction, and by a later holder.
            for again in [entry(5, 3), entry(5, 4), entry(7, 1)] {
                let mut tx = client.$begin().await.unwrap();
                let again = finish_tick(&mut tx, &cron, again, tick).await.unwrap_err();
                assert!(matches!(again, Stop::Repeated(_)), "{again}");
            }
            let mut tx = client.$begin().await.unwrap();
            assert_eq!(claim_ticks(&mut tx, &cron, entry(7, 1)).await.unwrap().last, Some(tick));
            let begun = begin_tick(&mut tx, &cron, entry(7, 2), tick).await.unwrap_err();
            assert!(matches!(begun, Stop::Repeated(_)), "{begun}");
            drop(tx);
            let states = "SELECT state || ' ' || token || ' ' || owner_prefix FROM cron_tick";
            assert_eq!(rows(&admin, states).await, ["done 5 runner-5:1234"]);
        }
    };
}

async fn tokio_postgres_client(url: String) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn sqlx_client(url: String) -> sqlx::PgConnection {
    <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap()
}

use sqlx::Connection as _;

steps!(a_tick_is_taken_over_and_done_once_with_tokio_postgres, tokio_postgres_client, transaction);
steps!(a_tick_is_taken_over_and_done_once_with_sqlx, sqlx_client, begin);
