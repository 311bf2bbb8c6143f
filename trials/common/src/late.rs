//! The world of a late write: a plain resource, which two processes read and write under a lock without
//! tokens.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use reqwest::Client;
use sim::faults::Faults;
use sim::{Process, Sim};

/// The rule that a late write breaks.
const RULE: &str = "no owner writes after the next one has read";

/// The balance, and the owner who has read it last.
type Account = Arc<Mutex<(u64, String)>>;

/// Serves the resource on port 8081. It takes every write, as most resources do.
async fn serve() -> std::io::Result<()> {
    let read = |State(account): State<Account>, Path(owner): Path<String>| async move {
        let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
        account.1 = owner;
        account.0.to_string()
    };
    let write = |State(account): State<Account>, Path(owner): Path<String>, balance: String| async move {
        let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
        sim::always!(RULE, account.1 == owner);
        account.0 = balance.parse().unwrap_or_default();
    };
    let app = Router::new().route("/{owner}", get(read).put(write)).with_state(Account::default());
    axum::serve(tokio::net::TcpListener::bind("0.0.0.0:8081").await?, app).await
}

/// Adds one to the balance: reads, works for a while, and writes. The caller holds the lock.
///
/// # Errors
///
/// If the resource does not answer.
pub async fn deposit(owner: &str) -> reqwest::Result<()> {
    let (client, url) = (Client::new(), format!("http://account:8081/{owner}"));
    let balance = client.get(&url).send().await?.text().await?;
    sim::point("working");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let balance = balance.parse().unwrap_or(0) + 1;
    client.put(&url).body(balance.to_string()).send().await?.error_for_status().map(drop)
}

/// Asserts that the schedule in `sim-regressions/NAME.toml` leads to a late write ([`crate::expect_kept`]):
/// two processes run `work` under the lock of `redis`, one is paused for longer than its lease, and its write
/// comes after the next owner's read.
///
/// # Panics
///
/// If the write is not late, or if the file was missing.
pub fn expect_late_write<M, F>(name: &str, redis: fn(&mut Sim) -> &mut Sim, work: M)
where
    M: Fn(Process) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let pauses = Faults::default().only(&["pause"]);
    crate::expect_kept(name, RULE, pauses, move |sim: &mut Sim| {
        redis(sim).service("account", |_| async { serve().await.expect("a free port") });
        for name in ["a", "b"] {
            sim.process(name, work);
        }
    });
}
