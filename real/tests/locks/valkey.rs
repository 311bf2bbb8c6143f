//! Locks on a live Valkey 9: leases are renewed and released by the server's own commands, and by scripts
//! where a user may not run these; each connection finds out for itself.

use std::collections::BTreeMap;
use std::time::Duration;

use dlock::{AnyBackend, Lock, LockKey, Options, Released, TokioRuntime};
use real::servers::{Persistence, Redis, Stage};
use redis::aio::MultiplexedConnection;

/// The rights of docs/rights.md.
const RIGHTS: &str = include_str!("../../../docs/rights.md");

type AnyLock = Lock<AnyBackend<TokioRuntime>>;

/// The commands of locks whose number is checked: those of the scripts, and those that replace scripts.
const COUNTED: [&str; 7] = ["eval", "evalsha", "pexpire", "del", "set", "delifeq", "publish"];

/// A connection of the default user, who may do anything.
struct Admin(MultiplexedConnection);

impl Admin {
    async fn new(server: &Redis) -> Self {
        let client = redis::Client::open(format!("redis://{}", server.address())).unwrap();
        Self(client.get_multiplexed_async_connection().await.unwrap())
    }

    async fn says<T: redis::FromRedisValue>(&mut self, line: &str) -> T {
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>()).query_async(&mut self.0).await.expect(line)
    }

    /// Returns the calls of [`COUNTED`] since the last call of this function. A command in a script counts.
    async fn calls(&mut self) -> String {
        let text: String = self.says("INFO commandstats").await;
        let _: () = self.says("CONFIG RESETSTAT").await;
        let calls = text.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            // Calls that were refused are counted apart.
            let calls = rest.split(',').next()?;
            (COUNTED.contains(&name) && calls != "0").then(|| (name.to_owned(), calls.to_owned()))
        });
        let calls: BTreeMap<_, _> = calls.collect();
        calls.iter().map(|(name, calls)| format!("{name} {calls}")).collect::<Vec<_>>().join(", ")
    }
}

async fn connect(url: &str, ttl: Duration) -> AnyLock {
    Lock::connect(url, Options::new(ttl)).await.unwrap()
}

fn orders() -> LockKey {
    LockKey::new("orders", "42").unwrap()
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn leases_are_renewed_and_released_by_commands() {
    let stage = Stage::new().unwrap();
    let valkey = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let mut admin = Admin::new(&valkey).await;
    let lock = connect(&format!("redis://{}", valkey.address()), LONG).await;
    let handle = lock.acquire(&orders(), lock.deadline_in(LONG)).await.unwrap();
    handle.renew().await.unwrap();
    // The SET is that of the acquire.
    assert_eq!(admin.calls().await, "eval 2, pexpire 1, set 1", "the first renewal finds out");
    let _: () = admin.says(&format!("PEXPIRE {} 15000", orders().owner_key())).await;
    admin.calls().await;
    for _ in 0..3 {
        handle.renew().await.unwrap();
    }
    let left: i64 = admin.says(&format!("PTTL {}", orders().owner_key())).await;
    assert!(left > 15_000, "{left}");
    assert_eq!(handle.release().await.unwrap(), Released::Done);
    assert_eq!(admin.calls().await, "delifeq 1, publish 1, set 3");
    let held: bool = admin.says(&format!("EXISTS {}", orders().owner_key())).await;
    assert!(!held);
}

#[tokio::test]
async fn an_expired_lease_is_neither_extended_nor_is_the_next_one_released() {
    let stage = Stage::new().unwrap();
    let valkey = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let mut admin = Admin::new(&valkey).await;
    let url = format!("redis://{}", valkey.address());
    let (first, second) = (connect(&url, LONG).await, connect(&url, LONG).await);
    let late = first.acquire(&orders(), first.deadline_in(LONG)).await.unwrap();
    late.renew().await.unwrap();
    // Expired, as the server sees it.
    let _: () = admin.says(&format!("DEL {}", orders().owner_key())).await;
    admin.calls().await;
    assert!(late.renew().await.is_err(), "a renewal creates no lease");
    assert_eq!(admin.calls().await, "set 1");
    let held: bool = admin.says(&format!("EXISTS {}", orders().owner_key())).await;
    assert!(!held);
    let next = second.acquire(&orders(), second.deadline_in(LONG)).await.unwrap();
    admin.calls().await;
    assert_eq!(late.release().await.unwrap(), Released::NotOwner);
    assert_eq!(admin.calls().await, "delifeq 1, publish 1");
    let owner: String = admin.says(&format!("GET {}", orders().owner_key())).await;
    assert_eq!(owner, next.owner().as_str());
    assert_eq!(next.release().await.unwrap(), Released::Done);
}

#[tokio::test]
async fn the_message_of_a_release_wakes_a_waiter() {
    let stage = Stage::new().unwrap();
    let valkey = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let mut admin = Admin::new(&valkey).await;
    let url = format!("redis://{}", valkey.address());
    let (holder, waiter) = (connect(&url, LONG).await, connect(&url, LONG).await);
    let handle = holder.acquire(&orders(), holder.deadline_in(LONG)).await.unwrap();
    handle.renew().await.unwrap();
    let key = orders();
    let waits = waiter.acquire(&key, waiter.deadline_in(LONG));
    let releases = async {
        let channel = format!("PUBSUB NUMSUB {}", key.freed_channel());
        for _ in 0..6000 {
            if admin.says::<(String, u64)>(&channel).await.1 > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        admin.calls().await;
        handle.release().await.unwrap();
    };
    let (next, ()) = futures_util::future::join(waits, releases).await;
    let calls = admin.calls().await;
    assert!(calls.contains("delifeq 1") && calls.contains("publish 1"), "{calls}");
    next.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_new_connection_finds_out_for_itself() {
    let stage = Stage::new().unwrap();
    let valkey = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let mut admin = Admin::new(&valkey).await;
    let lock = connect(&format!("redis://{}", valkey.address()), LONG).await;
    let handle = lock.acquire(&orders(), lock.deadline_in(LONG)).await.unwrap();
    handle.renew().await.unwrap();
    handle.renew().await.unwrap();
    let _: u64 = admin.says("CLIENT KILL TYPE normal SKIPME yes").await;
    admin.calls().await;
    while handle.renew().await.is_err() {
        assert!(handle.is_valid(), "renewed before it ends");
    }
    handle.renew().await.unwrap();
    handle.release().await.unwrap();
    assert_eq!(admin.calls().await, "delifeq 1, eval 1, pexpire 1, publish 1, set 1");
}

#[tokio::test]
async fn a_user_without_the_right_to_a_command_uses_scripts() {
    let stage = Stage::new().unwrap();
    let valkey = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let mut admin = Admin::new(&valkey).await;
    for line in RIGHTS.lines().filter(|line| line.starts_with("ACL SETUSER")) {
        let _: () = admin.says(line).await;
    }
    let url = format!("redis://app:secret@{}", valkey.address());
    for (rule, calls) in [
        ("-delifeq", "del 1, eval 3, evalsha 1, pexpire 2, publish 1, set 1"),
        ("+delifeq", "delifeq 1, eval 2, pexpire 1, publish 1, set 2"),
    ] {
        let _: () = admin.says(&format!("ACL SETUSER app {rule}")).await;
        let lock = connect(&url, LONG).await;
        admin.calls().await;
        let handle = lock.acquire(&orders(), lock.deadline_in(LONG)).await.unwrap();
        handle.renew().await.unwrap();
        handle.renew().await.unwrap();
        assert_eq!(handle.release().await.unwrap(), Released::Done);
        assert_eq!(admin.calls().await, calls, "{rule}");
        let refusals: Vec<redis::Value> = admin.says("ACL LOG").await;
        let refusals = format!("{refusals:?}");
        assert!(!refusals.contains("delifeq"), "{rule}: the question is no refused command: {refusals}");
    }
    // The right is withdrawn while the connection uses the command.
    let _: () = admin.says("ACL SETUSER app +delifeq").await;
    let lock = connect(&url, LONG).await;
    let handle = lock.acquire(&orders(), lock.deadline_in(LONG)).await.unwrap();
    handle.renew().await.unwrap();
    let _: () = admin.says("ACL SETUSER app -delifeq").await;
    assert_eq!(handle.release().await.unwrap(), Released::Done);
    let held: bool = admin.says(&format!("EXISTS {}", orders().owner_key())).await;
    assert!(!held);
}

#[tokio::test]
async fn a_redlock_renews_and_releases_its_votes_by_commands() {
    let stage = Stage::new().unwrap();
    let start = |n: u32| Redis::start_valkey(&stage, &format!("valkey-{n}"), Persistence::None).unwrap();
    let three = [start(1), start(2), start(3)];
    let url = format!("redis://{}", three.each_ref().map(Redis::address).join(","));
    let lock = connect(&url, LONG).await;
    let handle = lock.acquire(&orders(), lock.deadline_in(LONG)).await.unwrap();
    handle.renew().await.unwrap();
    handle.renew().await.unwrap();
    assert_eq!(handle.release().await.unwrap(), Released::Done);
    // Some server is in the majorities of both calls.
    let mut calls = Vec::new();
    for server in &three {
        calls.push(Admin::new(server).await.calls().await);
    }
    let is_released = |calls: &String| calls.contains("delifeq 1") && !calls.contains("del 1");
    assert!(calls.iter().any(is_released), "{calls:?}");
}
