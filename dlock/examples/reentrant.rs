//! A function that locks an order calls another one that locks it too. Both use the scope of their request:
//! the inner one shares the lease and its token, and the outer one still holds the lock after it.
//!
//! Run it: `cargo run --example reentrant -- redis://127.0.0.1:6379`.

use std::error::Error;
use std::time::Duration;

use dlock::{AnyBackend, FencingToken, Left, Lock, LockKey, Options, Scope, TokioRuntime};

type Request = Scope<AnyBackend<TokioRuntime>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(10))).await?;
    let order = LockKey::new("orders", "42")?;
    // One scope for each request: two requests exclude each other.
    let (one, two) = (lock.scope(), lock.scope());
    let deadline = lock.deadline_in(Duration::from_secs(30));
    tokio::try_join!(ship(&one, &order, deadline), ship(&two, &order, deadline))?;
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Ships an order, and bills it on the way.
async fn ship(request: &Request, order: &LockKey, deadline: dlock::Instant) -> Result<(), Box<dyn Error>> {
    let outer = request.acquire(order, deadline).await?;
    write("packed", outer.fence()).await;
    bill(request, order, deadline).await?;
    write("shipped", outer.fence()).await;
    if let Left::Released(_) = outer.leave().await? {
        println!("released");
    }
    Ok(())
}

/// Bills an order: alone, or inside another section of the request.
async fn bill(request: &Request, order: &LockKey, deadline: dlock::Instant) -> Result<(), Box<dyn Error>> {
    let inner = request.acquire(order, deadline).await?;
    write("billed", inner.fence()).await;
    inner.leave().await?;
    Ok(())
}

/// Your storage: it must refuse a token below the highest that it has seen.
async fn write(state: &str, token: FencingToken) {
    println!("order 42: {state}, with token {token}");
}
