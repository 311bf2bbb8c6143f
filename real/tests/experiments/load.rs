//! The open load and the filling with locks, on live servers.

use std::ops::ControlFlow;
use std::time::Duration;

use dlock::TokioRuntime;
use dlock::etcd::{Etcd, EtcdOptions};
use dlock::redis::{Redis as Backend, RedisOptions};
use dlock::{Lock, LockKey, Options, Runtime, TryAcquireError};
use real::contend::{Arm, Arrivals, Load, LoadError, contend};
use real::fill::etcd::{EtcdFill, Leases, fill_etcd};
use real::fill::{Counters, Fill, FillError, Way, fill};
use real::place::Place;
use real::primitive::Primitive;
use real::servers::{EtcdCluster, Persistence, Postgres, Redis, Stage, ask};
use real::systems::System;
use tokio::runtime::Handle;

fn load(redis: &Redis) -> Load {
    Load {
        arm: Arm::Lock,
        place: Place::new(System::Redis, vec![redis.address()]),
        primitive: Primitive::Mutex,
        ttl: Duration::from_secs(10),
        work: Duration::from_millis(20),
        pause: Duration::ZERO,
        contenders: 10,
        key: "k".to_owned(),
        keys: 1,
        rate: 200.0,
        arrivals: Arrivals::Even,
        patience: None,
        lasts: Duration::from_secs(1),
        polled: false,
        fenced: true,
    }
}

#[tokio::test]
async fn a_hot_key_counts_every_attempt() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let report = contend(load(&redis), TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.offered, report.failed), (200, 0), "{report}");
    assert_eq!(report.served + report.unserved, 200, "{report}");
    // The lock is held for 20 ms at a time: at most 50 sections fit into the second, and one more begins in
    // it.
    assert!((1..=51).contains(&report.served), "{report}");
    let counts = [&report.acquire_served, &report.acquire_from_call, &report.acquire_all].map(|of| of.count);
    assert_eq!(counts, [report.served, report.served, 200], "{report}");
    assert_eq!(report.fairness.served, report.served);
}

/// Nested sections and terms exclude each other as sections of a mutex do, and end with their attempts.
#[tokio::test]
async fn scopes_and_candidates_are_served_one_at_a_time() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    for primitive in [Primitive::Reentrant { depth: 3 }, Primitive::Election] {
        let load = Load { primitive, key: primitive.to_string(), ..load(&redis) };
        let report = contend(load, TokioRuntime::new(Handle::current())).await.unwrap();
        assert_eq!((report.offered, report.failed, report.lost), (200, 0, 0), "{report}");
        assert!((2..=51).contains(&report.served), "{report}");
        assert_eq!(report.release.count, report.served, "{report}");
    }
}

#[tokio::test]
async fn random_attempts_are_those_of_the_seed_however_many_contend() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (arrivals, lasts) = (Arrivals::Random { seed: 3 }, Duration::from_millis(300));
    let mut offered = Vec::new();
    for contenders in [1, 50] {
        let drawn = Load { contenders, arrivals, lasts, rate: 100.0, ..load(&redis) };
        offered.push(contend(drawn, TokioRuntime::new(Handle::current())).await.unwrap().offered);
    }
    assert_eq!(offered[0], offered[1]);
}

#[tokio::test]
async fn attempts_that_a_full_queue_refuses_count_in_no_latency() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let primitive = Primitive::Bounded { waiters: 2 };
    let crowd = Load { primitive, contenders: 50, ..load(&redis) };
    let report = contend(crowd, TokioRuntime::new(Handle::current())).await.unwrap();
    assert!(report.refused > 0 && report.failed == 0, "{report}");
    assert_eq!(report.served + report.unserved + report.refused, report.offered, "{report}");
    assert_eq!(report.acquire_all.count, report.served + report.unserved, "{report}");
    assert!(report.to_string().contains("were refused by a full queue"), "{report}");
}

#[tokio::test]
async fn holders_that_pause_beyond_their_lease_lose_it() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (ttl, pause) = (Duration::from_millis(100), Duration::from_millis(300));
    let paused = Load { ttl, pause, contenders: 2, rate: 20.0, ..load(&redis) };
    let report = contend(paused, TokioRuntime::new(Handle::current())).await.unwrap();
    assert!(report.served > 2 && report.lost == report.served, "{report}");
    assert!(report.to_string().contains("leases had ended before their release"), "{report}");
    let awake = contend(load(&redis), TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!(awake.lost, 0, "{awake}");
}

#[tokio::test]
async fn unserved_attempts_count_with_their_wait() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let key = LockKey::new("k", "0").unwrap();
    let taken = format!("SET {} somebody PX 600000\r\n", key.owner_key());
    assert_eq!(ask(redis.port(), &taken, |answer| answer.ends_with("\r\n")).unwrap(), "+OK\r\n");
    // The only contender waits for the first attempt's lock until the end.
    let stalled = Load { contenders: 1, rate: 100.0, ..load(&redis) };
    let report = contend(stalled, TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.served, report.unserved, report.acquire_all.count), (0, 100, 100), "{report}");
    // Waits count from the time when the load schedules an attempt to the end of the run.
    let (_, median) = report.acquire_all.quantiles[0];
    assert!((500_000..=511_000).contains(&median), "{report}");
}

#[tokio::test]
async fn attempts_give_up_when_their_patience_is_over() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let key = LockKey::new("k", "0").unwrap();
    let taken = format!("SET {} somebody PX 600000\r\n", key.owner_key());
    assert_eq!(ask(redis.port(), &taken, |answer| answer.ends_with("\r\n")).unwrap(), "+OK\r\n");
    let patience = Duration::from_millis(210);
    let hopeless = Load { rate: 20.0, patience: Some(patience), ..load(&redis) };
    let report = contend(hopeless, TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.offered, report.served, report.failed), (20, 0, 0), "{report}");
    // The last four come in the last 210 ms, and wait until the end.
    assert_eq!((report.abandoned, report.unserved), (16, 4), "{report}");
    assert!(report.first_abandoned.unwrap() >= patience, "{report}");
    assert!(report.to_string().contains("16 attempts gave up, the first after 0."), "{report}");
}

#[tokio::test]
async fn random_arrivals_are_repeated_by_their_seed() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let mut offered = Vec::new();
    for seed in [1, 1, 2] {
        let arrivals = Arrivals::Random { seed };
        let drawn = Load { arrivals, work: Duration::from_millis(1), ..load(&redis) };
        let report = contend(drawn, TokioRuntime::new(Handle::current())).await.unwrap();
        assert_eq!(report.thirds.iter().sum::<u64>(), report.served, "{report}");
        offered.push(report.offered);
    }
    assert!(offered[0] == offered[1] && offered[1] != offered[2], "{offered:?}");
}

#[tokio::test]
async fn silence_beyond_the_request_timeout_is_a_failure() {
    // Accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let servers = vec![silent.local_addr().unwrap().to_string()];
    let lasts = Duration::from_millis(800);
    // Both contenders fail soon, and no contender is left for the other two attempts.
    let offered =
        Load { place: Place::new(System::Redis, servers), contenders: 2, rate: 5.0, lasts, ..load(&redis) };
    let short_ttl = Load { ttl: Duration::from_millis(400), ..offered.clone() };
    let report = contend(short_ttl, TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.failed, report.unserved, report.acquire_all.count), (2, 2, 4), "{report}");
    let (reason, count) = report.failures.first_key_value().unwrap();
    assert!(reason.contains("did not answer in time") && *count == 2, "{report}");
    assert!(report.to_string().contains("2 failed: no lock until the deadline"), "{report}");
    // A request may take a second here: the run ends before that, and no attempt has failed.
    let report = contend(offered, TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.failed, report.unserved, report.failures.len()), (0, 4, 0), "{report}");
}

#[tokio::test]
async fn a_key_space_serves_all() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    // A key for each attempt: none waits for another.
    let spread = Load { keys: 1000, contenders: 50, work: Duration::ZERO, rate: 100.0, ..load(&redis) };
    let report = contend(spread, TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.failed, report.fairness.inversions), (0, 0), "{report}");
    assert_eq!(report.served + report.unserved, 100, "{report}");
    assert_eq!(report.release.count, report.served, "{report}");
}

#[tokio::test]
async fn a_key_space_on_etcd_serves_all() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let lasts = Duration::from_secs(2);
    let spread =
        Load { place: Place::new(System::Etcd, etcd.addresses()), keys: 1000, lasts, ..load(&redis) };
    let spread = Load { contenders: 100, work: Duration::ZERO, rate: 1000.0, ..spread };
    let report = contend(spread, TokioRuntime::new(Handle::current())).await.unwrap();
    assert_eq!((report.failed, report.lost, report.fairness.inversions), (0, 0, 0), "{report}");
    assert_eq!(report.served + report.unserved, 2000, "{report}");
    assert_eq!(report.release.count, report.served, "{report}");
}

#[tokio::test]
async fn a_rate_of_zero_is_refused() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let none = Load { rate: 0.0, ..load(&redis) };
    let error = contend(none, TokioRuntime::new(Handle::current())).await.unwrap_err();
    assert!(matches!(error, LoadError::Zero("--rate")), "{error}");
}

#[tokio::test]
async fn a_seed_fills_two_servers_alike() {
    let stage = Stage::new().unwrap();
    let runtime = TokioRuntime::new(Handle::current());
    let mut digests = Vec::new();
    for (name, seed) in [("one", 7), ("two", 7), ("three", 8)] {
        let redis = Redis::start(&stage, name, Persistence::None).unwrap();
        let (ttl, spread) = (Duration::from_secs(600), Duration::from_secs(60));
        let order = Fill {
            server: redis.address(),
            keys: 5300,
            key: "k".to_owned(),
            seed,
            ttl,
            spread,
            counters: Counters::Key,
            way: Way::Commands,
        };
        let reported = std::cell::Cell::new(0);
        let filled = fill(&runtime, order, |locks| reported.set(reported.get() + locks)).await.unwrap();
        assert_eq!((reported.get(), filled.keys_added), (5300, 2 * 5300));
        digests.push(ask(redis.port(), "DEBUG DIGEST\r\n", |answer| answer.ends_with("\r\n")).unwrap());
        // The filled keys are taken locks.
        let backend = Backend::new(runtime.clone(), &redis.address(), RedisOptions::default()).unwrap();
        let lock = Lock::new(backend, Options::new(ttl)).unwrap();
        let taken = lock.try_acquire(&LockKey::new("k", "5299").unwrap()).await.err();
        assert!(matches!(taken, Some(TryAcquireError::Taken { .. })), "{taken:?}");
    }
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
}

#[tokio::test]
async fn the_lock_fills_a_server_itself() {
    let stage = Stage::new().unwrap();
    let runtime = TokioRuntime::new(Handle::current());
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let ttl = Duration::from_secs(600);
    let order = |key: &str, counters, way| Fill {
        server: redis.address(),
        keys: 3000,
        key: key.to_owned(),
        seed: 7,
        ttl,
        spread: Duration::from_secs(60),
        counters,
        way,
    };
    let made = |key, counters| fill(&runtime, order(key, counters, Way::Lock), |_| {});
    assert_eq!(made("none", Counters::None).await.unwrap().keys_added, 3000);
    assert_eq!(made("key", Counters::Key).await.unwrap().keys_added, 6000);
    let added = made("slots", Counters::Slots).await.unwrap().keys_added;
    assert!((3001..6000).contains(&added), "locks of one slot share a counter: {added}");
    let backend = Backend::new(runtime.clone(), &redis.address(), RedisOptions::default()).unwrap();
    let lock = Lock::new(backend, Options::new(ttl)).unwrap();
    let taken = lock.try_acquire(&LockKey::new("key", "2999").unwrap()).await.err();
    assert!(matches!(taken, Some(TryAcquireError::Taken { .. })), "{taken:?}");
    for (counters, way) in [(Counters::Slots, Way::Commands), (Counters::Shards(3), Way::Lock)] {
        let refused = fill(&runtime, order("k", counters, way), |_| {}).await.err();
        assert!(matches!(refused, Some(FillError::Counters { .. })), "{refused:?}");
    }
}

fn fill_of(etcd: &EtcdCluster, key: &str, keys: u64, leases: Leases) -> EtcdFill {
    let (servers, key, ttl) = (etcd.addresses(), key.to_owned(), Duration::from_secs(600));
    EtcdFill { servers, keys, key, seed: 7, ttl, leases }
}

#[tokio::test]
async fn a_fill_that_etcd_ends_says_what_it_has_made() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let client = etcd_client::Client::connect(etcd.addresses(), None).await.unwrap();
    let runtime = TokioRuntime::new(Handle::current());
    // Once some are made, the lease of all locks is revoked.
    let on_locks = |_| {
        let mut client = client.clone();
        runtime.spawn(async move {
            for lease in client.leases().await.unwrap().leases() {
                client.lease_revoke(lease.id()).await.ok();
            }
        });
        ControlFlow::Continue(())
    };
    let order = fill_of(&etcd, "k", 1_000_000, Leases::Shared);
    let filled = fill_etcd(&runtime, order, on_locks).await.unwrap();
    let reason = filled.failed.unwrap();
    assert!(reason.contains("requested lease not found"), "{reason}");
    assert!((1..1_000_000).contains(&filled.locks), "{} locks", filled.locks);
}

#[tokio::test]
async fn a_fill_of_etcd_ends_when_it_is_told_to() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let order = fill_of(&etcd, "k", 2000, Leases::Each);
    let reported = std::cell::Cell::new(0);
    let on_locks = |locks| {
        reported.set(reported.get() + locks);
        if reported.get() < 50 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let filled = fill_etcd(&TokioRuntime::new(Handle::current()), order, on_locks).await.unwrap();
    assert_eq!(filled.locks, reported.get());
    // Those whose requests were in flight are made.
    assert!((50..=300).contains(&filled.locks), "{} locks", filled.locks);
}

#[tokio::test]
async fn a_filled_etcd_holds_every_lock_with_its_lease() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let runtime = TokioRuntime::new(Handle::current());
    let fills =
        [(Leases::Each, "each", 300), (Leases::Together, "together", 300), (Leases::Shared, "shared", 1)];
    for (leases, key, granted) in fills {
        let order = fill_of(&etcd, key, 300, leases);
        let reported = std::cell::Cell::new(0);
        let mut client = etcd_client::Client::connect(etcd.addresses(), None).await.unwrap();
        let on_locks = |locks| {
            reported.set(reported.get() + locks);
            ControlFlow::Continue(())
        };
        assert_eq!(fill_etcd(&runtime, order, on_locks).await.unwrap().locks, 300);
        assert_eq!(reported.get(), 300);
        let all = etcd_client::GetOptions::new().with_prefix();
        let found = client.get(format!("lock/v1/{key}:"), Some(all)).await.unwrap();
        let leases: std::collections::BTreeSet<_> = found.kvs().iter().map(|kv| kv.lease()).collect();
        assert_eq!((found.kvs().len(), leases.len()), (300, granted));
        // The filled keys are taken locks.
        let backend = Etcd::new(runtime.clone(), &etcd.addresses(), EtcdOptions::new(Duration::from_secs(5)));
        let lock = Lock::new(backend.unwrap(), Options::new(Duration::from_secs(5))).unwrap();
        let taken = lock.try_acquire(&LockKey::new(key, "299").unwrap()).await.err();
        assert!(matches!(taken, Some(TryAcquireError::Taken { .. })), "{taken:?}");
        let free = lock.try_acquire(&LockKey::new(key, "300").unwrap()).await;
        free.unwrap().release().await.unwrap();
    }
    // Fills with the same seed share no leases. Each of the three lock clients may have a lease of its own.
    let mut client = etcd_client::Client::connect(etcd.addresses(), None).await.unwrap();
    let all = client.leases().await.unwrap().leases().len();
    assert!((601..=604).contains(&all), "{all} leases");
}

#[tokio::test]
async fn without_a_lock_a_conditional_update_lets_one_win() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let (client, connection) = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::task::JoinSet::from_iter([connection]);
    for (arm, table) in [(Arm::Version, "contend_cases"), (Arm::Jobs, "contend_jobs")] {
        let place = Place::new(System::Redis, vec![postgres.url()]);
        let offered = Load { arm, place, ..load(&redis) };
        let report = contend(offered, TokioRuntime::new(Handle::current())).await.unwrap();
        assert_eq!(report.served + report.unserved, 200, "{report}");
        assert!(report.served > 0 && report.conflicts > 0, "{report}");
        // Each served attempt raised the version by one, and no other did.
        let query = format!("SELECT version FROM {table}");
        let version: i64 = client.query_one(&query, &[]).await.unwrap().get(0);
        assert_eq!(u64::try_from(version).unwrap(), report.served, "{report}");
        // In both arms sections of 20 ms exclude each other: at most 50 fit into the second, and one more
        // begins in it.
        assert!(report.served <= 51, "{report}");
    }
    drop(connection);
}
