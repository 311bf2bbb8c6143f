//! Locks of users who have the rights that docs/rights.md states and no others, on live servers.

use std::time::Duration;

use dlock::election::Election;
use dlock::queue::{Claimed, Jobs};
use dlock::redis::{Queue, RedisOptions};
use dlock::{
    AnyBackend, BackendError, Cap, ConnectError, Lock, LockKey, Options, Runtime, TokioRuntime,
    TryAcquireError,
};
use etcd_client::{Client, Permission, PermissionType, RoleRevokePermissionOptions};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper, ask};

/// The rights of docs/rights.md.
const PAGE: &str = include_str!("../../../docs/rights.md");

type AnyLock = Lock<AnyBackend<TokioRuntime>>;

async fn connect(url: &str) -> Result<AnyLock, ConnectError> {
    Lock::connect(url, Options::new(Duration::from_secs(10))).await
}

/// Acquires, renews and releases a lock, while another client of the same user waits for it.
async fn work(url: &str) -> Result<(), String> {
    work_on("42", url).await
}

async fn work_on(id: &str, url: &str) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| error.to_string();
    let (one, other) = (connect(url).await, connect(url).await);
    let (one, other) = (one.map_err(|error| told(&error))?, other.map_err(|error| told(&error))?);
    let key = LockKey::new("orders", id).unwrap();
    let deadline = one.deadline_in(Duration::from_secs(8));
    let handle = one.acquire(&key, deadline).await.map_err(|error| told(&error))?;
    let token = handle.fence();
    let election = Election::new(other.clone(), key.clone(), Cap(Duration::from_secs(60))).unwrap();
    let seen = election.observe().next().await.map_err(|error| told(&error))?;
    assert_eq!(seen.term, token);
    let holds = async {
        handle.renew().await.map_err(|error| told(&error))?;
        handle.release().await.map_err(|error| told(&error))
    };
    let waits = other.acquire(&key, other.deadline_in(Duration::from_secs(8)));
    let (held, next) = futures_util::future::join(holds, waits).await;
    held?;
    let next = next.map_err(|error| told(&error))?;
    assert!(next.fence() > token);
    next.release().await.map_err(|error| told(&error))?;
    Ok(())
}

/// Sends a command to Redis as the default user, who may do anything.
fn redis_says(redis: &Redis, line: &str) -> String {
    ask(redis.port(), &format!("{line}\r\n"), |answer| answer.ends_with("\r\n")).unwrap()
}

/// Makes the user of the page.
fn let_in(redis: &Redis) {
    for line in PAGE.lines().filter(|line| line.starts_with("ACL SETUSER")) {
        assert_eq!(redis_says(redis, line), "+OK\r\n");
    }
}

/// Returns the line of the page that begins so.
fn line(begin: &str) -> &'static str {
    PAGE.lines().find(|line| line.starts_with(begin)).expect("a line of the page")
}

/// Loads a script as an administrator does.
async fn load(redis: &Redis, text: &str) {
    let client = redis::Client::open(format!("redis://{}", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let digest: String =
        redis::cmd("SCRIPT").arg("LOAD").arg(text).query_async(&mut connection).await.unwrap();
    assert_eq!(digest.len(), 40);
}

#[tokio::test]
async fn a_user_of_redis_has_the_rights_of_the_page() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let url = format!("redis://app:secret@{}", redis.address());
    work(&url).await.unwrap();
    // Without the text of a script: only what an administrator has loaded.
    assert_eq!(redis_says(&redis, "ACL SETUSER app -eval"), "+OK\r\n");
    assert_eq!(redis_says(&redis, "SCRIPT FLUSH SYNC"), "+OK\r\n");
    let error = work(&url).await.unwrap_err();
    assert!(error.contains("SCRIPT LOAD"), "{error}");
    for (_, text) in dlock::scripts() {
        load(&redis, text).await;
    }
    work(&url).await.unwrap();
}

#[tokio::test]
async fn no_right_of_the_page_for_redis_can_be_left_out() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let url = format!("redis://app:secret@{}", redis.address());
    // The others have substitutes: a refused publish, subscribe or ping only delays a waiter, and the user
    // without `eval` runs loaded scripts.
    for right in ["set", "get", "incr", "pttl", "pexpire", "del"] {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
        // A key of its own: the waiter of an earlier one may still come to hold it.
        let error = work_on(right, &url).await.expect_err(right);
        assert!(error.contains("NOPERM") || error.contains("can't run this command"), "{right}: {error}");
        redis_says(&redis, &format!("ACL SETUSER app +{right}"));
    }
    work(&url).await.unwrap();
}

/// Returns the lines of the page with the rights of a semaphore.
fn lines_of_semaphores() -> impl Iterator<Item = &'static str> {
    let of_jobs = |line: &&str| line.contains("+hincrby");
    let lines = PAGE.lines().filter(|line| line.contains("+zadd") || line.contains("+hset"));
    lines.filter(move |line| !of_jobs(line))
}

/// Takes each step of a job queue once.
async fn work_on_jobs(queue: &Queue<TokioRuntime>) -> Result<(), BackendError> {
    let deadline = queue.runtime().now() + Duration::from_secs(8);
    let lease = Duration::from_secs(30);
    queue.enqueue(7, b"to: ada", Duration::ZERO, deadline).await?;
    for step in 0..3 {
        let claimed = queue.claim(lease, None, deadline).await?;
        let Claimed::Job(job) = claimed else { panic!("step {step}: {claimed:?}") };
        let is_ours = match step {
            0 => {
                queue.extend(&job, lease, deadline).await?
                    && queue.retry(&job, Duration::ZERO, "", deadline).await?
            }
            1 => queue.bury(&job, "no such address", deadline).await?,
            _ => queue.finish(&job, deadline).await?,
        };
        assert!(is_ours, "step {step}");
        if step == 1 {
            assert_eq!(queue.dead(10, deadline).await?.len(), 1);
            assert!(queue.requeue(7, deadline).await?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_right_of_the_page_for_job_queues_can_be_left_out() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let mut options = RedisOptions::default();
    (options.username, options.password) = (Some("app".to_owned()), Some("secret".to_owned()));
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let client = dlock::redis::Redis::new(runtime, &redis.address(), options).unwrap();
    let queue = |name: &str| Queue::new(client.clone(), LockKey::new("jobs", name).unwrap());
    work_on_jobs(&queue("all")).await.unwrap();
    let rights = PAGE.lines().find(|line| line.contains("+hincrby")).expect("a line of the page");
    let rights: Vec<_> = rights.split_whitespace().filter_map(|word| word.strip_prefix('+')).collect();
    assert_eq!(rights.len(), 10, "{rights:?}");
    for right in rights {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
        let error = work_on_jobs(&queue(right)).await.expect_err(right).to_string();
        assert!(error.contains("NOPERM") || error.contains("can't run this command"), "{right}: {error}");
        redis_says(&redis, &format!("ACL SETUSER app +{right}"));
    }
}

#[tokio::test]
async fn no_right_of_the_page_for_semaphores_can_be_left_out() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let url = format!("redis://app:secret@{}", redis.address());
    let mut options = Options::new(Duration::from_secs(10));
    options.permits = 2;
    let permits = Lock::connect(&url, options).await.unwrap();
    let work = async |id: &str| {
        let key = LockKey::new("permits", id).unwrap();
        let (one, other) = (permits.try_acquire(&key).await, permits.try_acquire(&key).await);
        let (one, other) =
            (one.map_err(|error| error.to_string())?, other.map_err(|error| error.to_string())?);
        match permits.try_acquire(&key).await {
            Err(TryAcquireError::Taken { .. }) => {}
            third => return third.map(drop).map_err(|error| error.to_string()),
        }
        one.renew().await.map_err(|error| error.to_string())?;
        one.release().await.map_err(|error| error.to_string())?;
        other.release().await.map(drop).map_err(|error| error.to_string())
    };
    work("all").await.unwrap();
    let rights = lines_of_semaphores();
    // HGET is for a grant whose answer was lost; ZREM and HDEL of others for permits that have expired.
    let rights = rights.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('+'));
    let rights: Vec<&str> = rights.filter(|right| *right != "hget").collect();
    assert_eq!(rights.len(), 12, "{rights:?}");
    for right in rights {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
        let error = work(right).await.expect_err(right);
        assert!(error.contains("NOPERM") || error.contains("can't run this command"), "{right}: {error}");
        redis_says(&redis, &format!("ACL SETUSER app +{right}"));
    }
}

#[tokio::test]
async fn no_right_of_the_page_for_queues_can_be_left_out() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let url = format!("redis://app:secret@{}", redis.address());
    let mut options = Options::new(Duration::from_secs(10));
    options.waiters_max = Some(3);
    let lock = Lock::connect(&url, options).await.unwrap();
    let work = async |id: &str| {
        let key = LockKey::new("queue", id).unwrap();
        let held = lock.try_acquire(&key).await.map_err(|error| error.to_string())?;
        let next = lock.acquire(&key, lock.deadline_in(Duration::from_secs(5)));
        let release = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            held.release().await.map_err(|error| error.to_string())
        };
        let (next, released) = tokio::join!(next, release);
        released?;
        next.map_err(|error| error.to_string())?.release().await.map(drop).map_err(|error| error.to_string())
    };
    // Hashes are for permits and readers.
    for right in ["hset", "hdel", "hget", "hgetall"] {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
    }
    work("all").await.unwrap();
    let rights = lines_of_semaphores();
    let rights = rights.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('+'));
    let rights: Vec<&str> = rights.filter(|right| !right.starts_with('h')).collect();
    assert_eq!(rights.len(), 9, "{rights:?}");
    for right in rights {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
        let error = work(right).await.expect_err(right);
        assert!(error.contains("NOPERM") || error.contains("can't run this command"), "{right}: {error}");
        redis_says(&redis, &format!("ACL SETUSER app +{right}"));
    }
}

#[tokio::test]
async fn no_right_of_the_page_for_readers_can_be_left_out() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let url = format!("redis://app:secret@{}", redis.address());
    let mut options = Options::new(Duration::from_secs(10));
    options.readers = true;
    let lock = Lock::connect(&url, options).await.unwrap();
    let work = async |id: &str| {
        let key = LockKey::new("readers", id).unwrap();
        let one = lock.request(&key).shared().try_acquire().await.map_err(|error| error.to_string())?;
        match lock.try_acquire(&key).await {
            Err(TryAcquireError::Taken { .. }) => {}
            writer => return writer.map(drop).map_err(|error| error.to_string()),
        }
        one.renew().await.map_err(|error| error.to_string())?;
        one.release().await.map_err(|error| error.to_string())?;
        let writer = lock.try_acquire(&key).await.map_err(|error| error.to_string())?;
        writer.release().await.map(drop).map_err(|error| error.to_string())
    };
    // Counts and ranges are for permits alone.
    for right in ["zcard", "zrange"] {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
    }
    work("all").await.unwrap();
    let rights = lines_of_semaphores();
    let rights = rights.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('+'));
    // HGET is for a grant whose answer was lost.
    let rights: Vec<&str> = rights.filter(|right| !["hget", "zcard", "zrange"].contains(right)).collect();
    assert_eq!(rights.len(), 10, "{rights:?}");
    for right in rights {
        redis_says(&redis, &format!("ACL SETUSER app -{right}"));
        let error = work(right).await.expect_err(right);
        assert!(error.contains("NOPERM") || error.contains("can't run this command"), "{right}: {error}");
        redis_says(&redis, &format!("ACL SETUSER app +{right}"));
    }
}

#[tokio::test]
async fn a_wrong_login_at_redis_is_told_and_not_repeated() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    let error = work(&format!("redis://app:se-cret@{}", redis.address())).await.unwrap_err();
    assert!(error.contains("WRONGPASS") || error.contains("AuthenticationFailed"), "{error}");
    assert!(!error.contains("se-cret"), "{error}");
    redis_says(&redis, "ACL SETUSER default resetpass >other");
    let error = work(&format!("redis://{}", redis.address())).await.unwrap_err();
    assert!(error.contains("NOAUTH"), "{error}");
}

/// Makes the user `app` with rights on `prefixes`, and turns the checks of rights on.
async fn admit(cluster: &EtcdCluster, prefixes: &[&str]) {
    let mut admin = Client::connect(cluster.addresses(), None).await.unwrap();
    admin.user_add("root", "all", None).await.unwrap();
    admin.role_add("root").await.unwrap();
    admin.user_grant_role("root", "root").await.unwrap();
    admin.role_add("locks").await.unwrap();
    for prefix in prefixes {
        let right = Permission::new(PermissionType::Readwrite, *prefix).with_prefix();
        admin.role_grant_permission("locks", right).await.unwrap();
    }
    admin.user_add("app", "secret", None).await.unwrap();
    admin.user_grant_role("app", "locks").await.unwrap();
    admin.auth_enable().await.unwrap();
}

#[tokio::test]
async fn a_user_of_etcd_has_the_rights_of_the_page() {
    let stage = Stage::new().unwrap();
    let cluster = EtcdCluster::start_one(&stage).unwrap();
    let address = &cluster.addresses()[0];
    let rights = PAGE.lines().filter(|line| line.starts_with("etcdctl role grant-permission"));
    let prefixes: Vec<_> = rights.map(|line| line.rsplit(' ').next().unwrap()).collect();
    admit(&cluster, &prefixes).await;
    let url = format!("etcd://app:secret@{address}");
    work(&url).await.unwrap();

    let error = work(&format!("etcd://app:se-cret@{address}")).await.unwrap_err();
    assert!(error.contains("authentication failed") && !error.contains("se-cret"), "{error}");
    let options = etcd_client::ConnectOptions::new().with_user("root", "all");
    let mut admin = Client::connect([address], Some(options)).await.unwrap();
    assert_eq!(prefixes.len(), 2);
    let of_prefix = || Some(RoleRevokePermissionOptions::new().with_prefix());
    admin.role_revoke_permission("locks", prefixes[0], of_prefix()).await.unwrap();
    let error = work(&url).await.unwrap_err();
    assert!(error.contains("permission denied"), "{error}");
}

#[tokio::test]
async fn many_claims_of_a_user_of_etcd_have_no_other_rights_than_one() {
    let stage = Stage::new().unwrap();
    let cluster = EtcdCluster::start_one(&stage).unwrap();
    admit(&cluster, &["lock/v1/mine:", "lock/guard/"]).await;
    let lock = connect(&format!("etcd://app:secret@{}", cluster.addresses()[0])).await.unwrap();
    let deadline = lock.deadline_in(Duration::from_secs(8));
    let keys = (0..60).map(|number| {
        let kind = if number % 10 == 9 { "theirs" } else { "mine" };
        LockKey::new(kind, &number.to_string()).unwrap()
    });
    let keys: Vec<_> = keys.collect();
    let claims = keys.iter().map(|key| lock.acquire(key, deadline));
    let answers = futures_util::future::join_all(claims).await;
    for (key, answer) in keys.iter().zip(answers) {
        match answer {
            Ok(handle) => {
                assert!(key.name().starts_with("mine"), "{key}");
                handle.release().await.unwrap();
            }
            Err(error) => {
                assert!(key.name().starts_with("theirs"), "{key}: {error}");
                assert!(error.to_string().contains("permission denied"), "{key}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_user_of_zookeeper_has_the_rights_of_the_page() {
    let stage = Stage::new().unwrap();
    let server = ZooKeeper::start(&stage).unwrap();
    server.administer(line("create /prod")).unwrap();
    work(&format!("zookeeper://app:secret@{}/prod", server.address())).await.unwrap();
    for login in ["app:se-cret@", ""] {
        let error = work(&format!("zookeeper://{login}{}/prod", server.address())).await.unwrap_err();
        assert!(error.contains("access list of /prod"), "{login}: {error}");
        assert!(!error.contains("se-cret"), "{error}");
    }
}
