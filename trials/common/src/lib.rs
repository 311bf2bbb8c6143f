//! The worlds of the trials of client libraries: a server, and two processes that contend for a lock on it.
//!
//! A client library is no lock. Its trial puts a small lock on it, of which there is a correct and a wrong
//! form: the correct one must be acquitted, and the wrong one found guilty, so that the library is seen to
//! work under all faults, and the trial to see mistakes.

mod late;

use std::future::Future;
use std::time::Duration;

pub use late::{deposit, expect_late_write};

use sim::Sim;
use sim::faults::Faults;
use sim::servers::redis::RedisHost;

/// The lock, and its key on the server.
pub const KEY: &str = "orders:42";

/// The time after which the key expires.
pub const TTL: Duration = Duration::from_secs(1);

/// Deletes the key if its value is still the owner's.
pub const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// The form of a small lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The owner compares before it deletes.
    Correct,
    /// The release deletes the key of any owner, as in many tutorials.
    Wrong,
}

/// A lock of few lines on one connection of a client library.
pub trait SmallLock: Send + Sized {
    /// An error of the library.
    type Error: Send;

    /// Acquires the lock, if it is free, by `SET key owner NX PX ttl` or the like.
    fn acquire(&mut self, owner: &str, form: Form) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Releases the lock: by [`RELEASE`] or the like, or by a deletion.
    fn release(&mut self, owner: &str, form: Form) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Adds a Redis, whose key [`KEY`] is the lock.
pub fn redis(sim: &mut Sim) -> &mut Sim {
    sim.host("redis", RedisHost::new().lock_key(KEY, KEY)).key(KEY).scale(TTL)
}

/// Adds two processes, each of which works under the lock three times. `connect` opens what the lock needs;
/// after an error the next round opens it anew.
pub fn contend<L, F>(sim: &mut Sim, form: Form, connect: impl Fn() -> F + Clone + Send + Sync + 'static)
where
    L: SmallLock,
    F: Future<Output = Result<L, L::Error>> + Send + 'static,
{
    for name in ["a", "b"] {
        let connect = connect.clone();
        sim.process(name, move |process| {
            let connect = connect.clone();
            async move {
                for round in 0..3 {
                    let owner = format!("{name}-{}-{round}", process.life());
                    // An error ends the round: the network or the server failed.
                    let _ = work(connect(), &owner, form).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
    }
}

async fn work<L: SmallLock>(
    lock: impl Future<Output = Result<L, L::Error>>,
    owner: &str,
    form: Form,
) -> Result<(), L::Error> {
    let mut lock = lock.await?;
    while !lock.acquire(owner, form).await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let section = sim::section(KEY);
    sim::point("working");
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(section);
    lock.release(owner, form).await
}

/// Asserts that 1,000 drawn schedules, each run twice, acquit the correct form, and that the search finds the
/// wrong one guilty of `verdict`.
///
/// # Panics
///
/// If one of them does not hold.
pub fn try_both(name: &str, verdict: &str, world: impl Fn(&mut Sim, Form) + Copy + Send + Sync + 'static) {
    try_both_under(Faults::default(), name, verdict, world);
}

/// Asserts the same as [`try_both`], under faults of these kinds alone.
///
/// # Panics
///
/// If one of them does not hold.
pub fn try_both_under(
    faults: Faults,
    name: &str,
    verdict: &str,
    world: impl Fn(&mut Sim, Form) + Copy + Send + Sync + 'static,
) {
    sim::check(name, move |sim: &mut Sim| world(sim, Form::Correct))
        .schedules(1000)
        .faults(faults.clone())
        .check_determinism()
        .run();
    let wrong = format!("{name}_wrong");
    let folder = tempdir(name);
    let search = sim::check(&wrong, move |sim: &mut Sim| world(sim, Form::Wrong));
    let failure = search.schedules(1000).faults(faults).keep_in(&folder).find().expect("the search runs");
    std::fs::remove_dir_all(folder).ok();
    let failure = failure.expect("the search finds the mistake");
    assert!(failure.problems.iter().any(|problem| problem.contains(verdict)), "{failure}");
}

/// Asserts that the schedule in `sim-regressions/NAME.toml` leads to `verdict`. Without the file, searches
/// for such a schedule and keeps it there. Prints the failure, and draws it as a page if `DLOCK_SIM_HTML`
/// names a file.
///
/// # Panics
///
/// If the schedule leads to something else, or if the file was missing.
pub fn expect_kept(
    name: &str,
    verdict: &str,
    faults: Faults,
    world: impl Fn(&mut Sim) + Copy + Send + Sync + 'static,
) {
    let search = sim::check(name, world).schedules(1000).faults(faults);
    let failure = search.find().expect("the search runs").expect("the search finds the mistake");
    println!("{failure}");
    assert!(failure.problems.iter().any(|problem| problem.contains(verdict)), "{failure}");
    assert!(failure.replay.starts_with("it is kept in"), "no kept schedule led to `{verdict}`");
}

fn tempdir(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("trial-{name}-{}", std::process::id()))
}
