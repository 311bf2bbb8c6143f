//! The Rust code of docs/compare-libraries.md, in the program of the README. A test compares both.
//!
//! One Redis, whose two lines come first in the program:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use dlock::{Lock, LockKey, Options};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lock = Lock::connect("redis://127.0.0.1:6379", Options::new(Duration::from_secs(30))).await?;
//! let key = LockKey::new("orders", "42")?;
//! # Ok(()) }
//! ```
//!
//! One write under a lock, which runs here on a lock server in memory:
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../dlock/doc/example.rs")); }
//! # use std::time::Duration;
//! # use dlock::{Cap, FencingToken};
//! # async fn write(_: &str, token: FencingToken) { assert_eq!(token.as_u64(), 1); }
//! # example::run(async |lock, _, key| {
//! let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
//! handle.while_held(Cap(Duration::from_secs(300)), write("paid", handle.fence())).await?;
//! handle.release().await?;
//! # // The lease was released: the next acquire need not wait.
//! # assert_eq!(lock.try_acquire(&key).await?.fence().as_u64(), 2);
//! # Ok(()) });
//! ```
//!
//! Redlock:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use dlock::{Cap, FencingToken, Lock, LockKey, Options};
//! # async fn write(_: &str, _: FencingToken) {}
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let key = LockKey::new("orders", "42")?;
//! let lock = Lock::connect("redis://a:6379,b:6379,c:6379", Options::new(Duration::from_secs(30))).await?;
//! let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
//! handle.while_held(Cap(Duration::from_secs(300)), write("paid", handle.fence())).await?;
//! handle.release().await?;
//! # Ok(()) }
//! ```
//!
//! ZooKeeper:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use dlock::{Cap, FencingToken, Lock, LockKey, Options};
//! # async fn write(_: &str, _: FencingToken) {}
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let key = LockKey::new("orders", "42")?;
//! let mut servers = dlock::ConnectOptions::default();
//! servers.session_ttl = Some(Duration::from_secs(45));
//! let options = Options::new(Duration::from_secs(30));
//! let lock = Lock::connect_with("zookeeper://127.0.0.1:2181", options, servers).await?;
//! let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
//! handle.while_held(Cap(Duration::from_secs(300)), write("paid", handle.fence())).await?;
//! handle.release().await?;
//! # Ok(()) }
//! ```
//!
//! etcd:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use dlock::{Cap, FencingToken, Lock, LockKey, Options};
//! # async fn write(_: &str, _: FencingToken) {}
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let key = LockKey::new("orders", "42")?;
//! let lock = Lock::connect("etcd://127.0.0.1:2379", Options::new(Duration::from_secs(30))).await?;
//! let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
//! handle.while_held(Cap(Duration::from_secs(300)), write("paid", handle.fence())).await?;
//! handle.release().await?;
//! # Ok(()) }
//! ```
