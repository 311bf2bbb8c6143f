//! A transfer between two accounts: it holds the locks on both, whichever the request names first, and sends
//! with each write the token of the account that it writes. Two transfers run at once, there and back.
//!
//! Run it: `cargo run --example transfer -- redis://127.0.0.1:6379`.

use std::error::Error;
use std::time::Duration;

use dlock::{AnyBackend, Cap, FencingToken, Lock, LockKey, Options, TokioRuntime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(10))).await?;
    let (there, back) = tokio::join!(transfer(&lock, "7", "3", 25), transfer(&lock, "3", "7", 10));
    there.and(back)?;
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Moves `cents` from one account to the other.
async fn transfer(
    lock: &Lock<AnyBackend<TokioRuntime>>,
    from: &str,
    to: &str,
    cents: u32,
) -> Result<(), Box<dyn Error>> {
    let [from, to] = [LockKey::new("accounts", from)?, LockKey::new("accounts", to)?];
    let held =
        lock.acquire_all(&[from.clone(), to.clone()], lock.deadline_in(Duration::from_secs(5))).await?;
    let token = |key: &LockKey| held.fence(key).ok_or("the key was acquired");
    let (debit, credit) = (token(&from)?, token(&to)?);
    let writes = async {
        write(&from, &format!("-{cents}"), debit).await;
        write(&to, &format!("+{cents}"), credit).await;
    };
    held.while_held(Cap(Duration::from_secs(60)), writes).await?;
    held.release().await?;
    Ok(())
}

/// Your storage: it must refuse a token below the highest that it has seen for this account. Both writes or
/// none need a transaction of its own.
async fn write(account: &LockKey, change: &str, token: FencingToken) {
    println!("{account}: {change}, with token {token}");
}
