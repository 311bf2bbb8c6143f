//! A lock for each of many orders, without a counter that stays behind for each: the orders of a hash slot
//! share one. Each grant takes its next number, so the tokens of an order skip those of the other orders.
//! They still grow from grant to grant, which is all that a fence needs.
//!
//! Run it: `cargo run --example shared_counters -- redis://127.0.0.1:6379`.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use dlock::redis::{TokenSource, shared_counter};
use dlock::{AnyBackend, Cap, ConnectOptions, FencingToken, Lock, LockKey, Options, TokioRuntime};

/// Three orders of one hash slot, of 16,384. The whole name of a lock decides on its slot.
const ORDERS: [&str; 3] = ["42", "9487", "29119"];

/// The written orders, in place of a storage that checks tokens. It knows nothing of the shared counter.
#[derive(Default)]
struct Orders {
    /// The highest token seen for each order.
    seen: BTreeMap<LockKey, FencingToken>,
}

impl Orders {
    /// Writes an order, unless a higher token has been seen for it.
    fn write(&mut self, order: &LockKey, token: FencingToken) {
        let seen = self.seen.entry(order.clone()).or_insert(token);
        if token < *seen {
            println!("{order}: token {token} is refused, {seen} was seen");
        } else {
            *seen = token;
            println!("{order}: written with token {token}");
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let mut servers = ConnectOptions::default();
    // All processes must set it.
    servers.tokens = TokenSource::Shared;
    let lock = Lock::connect_with(&url, Options::new(Duration::from_secs(10)), servers).await?;
    let keys = ORDERS.iter().map(|id| LockKey::new("orders", id)).collect::<Result<Vec<_>, _>>()?;
    for key in &keys {
        println!("{key} counts in {}", shared_counter(key.name()));
    }
    let mut orders = Orders::default();
    let old = update(&lock, &keys[0], &mut orders).await?;
    for key in keys.iter().cycle().skip(1).take(5) {
        update(&lock, key, &mut orders).await?;
    }
    // The first write once more, late: its process had paused.
    orders.write(&keys[0], old);
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Writes an order under its lock; returns the token.
async fn update(
    lock: &Lock<AnyBackend<TokioRuntime>>,
    order: &LockKey,
    orders: &mut Orders,
) -> Result<FencingToken, Box<dyn Error>> {
    let handle = lock.acquire(order, lock.deadline_in(Duration::from_secs(10))).await?;
    let token = handle.fence();
    handle.while_held(Cap(Duration::from_secs(60)), async { orders.write(order, token) }).await?;
    handle.release().await?;
    Ok(token)
}
