//! Three workers need one report at once: one makes it, and the others wait for it. A new report is made when
//! somebody knows that the last one is out of date.
//!
//! Run it: `cargo run --example single_flight -- redis://127.0.0.1:6379`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a live program, with a store in memory")]

#[path = "../doc/results.rs"]
#[allow(unreachable_pub, reason = "shared with the documentation")]
mod results;

use std::error::Error;
use std::time::Duration;

use dlock::flight::{Fresh, SingleFlight};
use dlock::{AnyBackend, Cap, FencingToken, Lock, LockKey, Options, TokioRuntime};
use results::InMemory;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(10))).await?;
    // Workers of several processes share results in a resource that checks tokens, in place of this memory.
    let results = InMemory::default();
    let worker = || SingleFlight::new(lock.clone(), results.clone(), Cap(Duration::from_secs(300)));
    let workers = [worker()?, worker()?, worker()?];
    let [one, two, three] = &workers;
    let known =
        tokio::try_join!(report(one, Fresh::Any), report(two, Fresh::Any), report(three, Fresh::Any))?;
    // An order has changed since the report was made.
    report(two, Fresh::Above(known.1)).await?;
    report(one, Fresh::Any).await?;
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Gets the report, and returns its token.
async fn report(
    worker: &SingleFlight<AnyBackend<TokioRuntime>, InMemory>,
    fresh: Fresh,
) -> Result<FencingToken, Box<dyn Error>> {
    let key = LockKey::new("reports", "orders")?;
    let flight = worker.run(&key, fresh, worker.deadline_in(Duration::from_secs(60)), compute).await?;
    let text = String::from_utf8(flight.result.value?)?;
    println!("{text}, {}", if flight.is_shared { "made by another worker" } else { "made here" });
    Ok(flight.result.token)
}

/// Your computation: here, a second of work.
async fn compute(token: FencingToken) -> Result<Vec<u8>, String> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(format!("report {token}").into_bytes())
}
