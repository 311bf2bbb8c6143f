//! The proxy's links under a real lock on a real Redis: slow, cut in one direction, reset.

use std::time::Duration;

use dlock::TokioRuntime;
use dlock::redis::{Redis as Backend, RedisOptions};
use dlock::{Lock, LockKey, Options, Runtime, TryAcquireError, timeout_at};
use real::faults::{Direction, Link, Proxy};
use real::servers::{Persistence, Redis, Stage, ask};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;

use crate::eventually::eventually;

struct Scene {
    _stage: Stage,
    redis: Redis,
    proxy: Proxy,
    runtime: TokioRuntime,
}

async fn scene() -> Scene {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let proxy = Proxy::start(&redis.address()).await.unwrap();
    Scene { _stage: stage, redis, proxy, runtime: TokioRuntime::new(Handle::current()) }
}

impl Scene {
    fn lock(&self) -> Lock<Backend<TokioRuntime>> {
        let mut options = Options::new(Duration::from_secs(60));
        options.request_timeout = Duration::from_millis(300);
        let (runtime, address) = (self.runtime.clone(), self.proxy.address());
        let backend = Backend::new(runtime, &address, RedisOptions::default()).unwrap();
        Lock::new(backend, options).unwrap()
    }

    fn redis_says(&self, command: &str) -> String {
        ask(self.redis.port(), &format!("{command}\r\n"), |answer| answer.ends_with("\r\n")).unwrap()
    }
}

fn key(id: &str) -> LockKey {
    LockKey::new("k", id).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_cut_of_replies_leaves_the_lock_taken() {
    let scene = scene().await;
    let lock = scene.lock();
    // The connection is open, and the server knows the scripts.
    lock.try_acquire(&key("first")).await.unwrap().release().await.unwrap();
    scene.proxy.set(Direction::ToServer, Link::Cut);
    assert!(matches!(lock.try_acquire(&key("a")).await.err(), Some(TryAcquireError::Backend(_))));
    assert_eq!(scene.redis_says(&format!("EXISTS {}", key("a").owner_key())), ":0\r\n");
    scene.proxy.set(Direction::ToServer, Link::Open);
    let lock = scene.lock();
    lock.try_acquire(&key("first")).await.unwrap().release().await.unwrap();
    scene.proxy.set(Direction::ToClient, Link::Cut);
    assert!(matches!(lock.try_acquire(&key("b")).await.err(), Some(TryAcquireError::Backend(_))));
    let held = format!("EXISTS {}", key("b").owner_key());
    assert_eq!(
        scene.redis_says(&format!("GET {}", key("b").fence_key())),
        "$1\r\n1\r\n",
        "it was granted, without an answer to the client"
    );
    // A lock that may have been granted is released as soon as the link heals.
    scene.proxy.set_both(Link::Open);
    eventually("the lock is released", || (scene.redis_says(&held) == ":0\r\n").then_some(()));
}

#[tokio::test]
async fn a_slow_link_delays_bytes_and_keeps_their_order() {
    let scene = scene().await;
    let delay = Duration::from_millis(100);
    scene.proxy.set(Direction::ToClient, Link::Slow(delay));
    let mut stream = scene.runtime.connect(&scene.proxy.address()).await.unwrap();
    let begun = scene.runtime.now();
    let numbers = 100..150;
    for number in numbers.clone() {
        stream.write_all(format!("ECHO {number}\r\n").as_bytes()).await.unwrap();
    }
    let expected: String = numbers.map(|number| format!("$3\r\n{number}\r\n")).collect();
    let mut answers = vec![0; expected.len()];
    stream.read_exact(&mut answers).await.unwrap();
    assert_eq!(answers, expected.as_bytes());
    assert!(scene.runtime.now() >= begun + delay);
}

#[tokio::test]
async fn after_a_reset_the_next_connection_works() {
    let scene = scene().await;
    let mut stream = scene.runtime.connect(&scene.proxy.address()).await.unwrap();
    stream.write_all(b"PING\r\n").await.unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).await.unwrap();
    scene.proxy.reset();
    let error = stream.read(&mut answer).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let lock = scene.lock();
    lock.try_acquire(&key("a")).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_dropped_proxy_closes_and_refuses_connections() {
    let scene = scene().await;
    let address = scene.proxy.address();
    let mut stream = scene.runtime.connect(&address).await.unwrap();
    drop(scene.proxy);
    let mut answer = [0; 1];
    let soon = scene.runtime.now() + Duration::from_secs(30);
    let read = timeout_at(&scene.runtime, soon, stream.read(&mut answer)).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
    assert!(scene.runtime.connect(&address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirected_proxy_leads_to_the_other_server() {
    let scene = scene().await;
    let other = Redis::start(&scene._stage, "other", Persistence::None).unwrap();
    let lock = scene.lock();
    lock.try_acquire(&key("before")).await.unwrap().leave();
    scene.proxy.redirect(&other.address());
    scene.proxy.reset();
    let deadline = scene.runtime.now() + Duration::from_secs(60);
    lock.acquire(&key("after"), deadline).await.unwrap().leave();
    let says = |port| {
        let question = format!("EXISTS {} {}\r\n", key("before").owner_key(), key("after").owner_key());
        ask(port, &question, |answer| answer.ends_with("\r\n")).unwrap()
    };
    assert_eq!((says(scene.redis.port()), says(other.port())), (":1\r\n".to_owned(), ":1\r\n".to_owned()));
}
