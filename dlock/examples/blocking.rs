//! A program without async code: renews in the background while it works, and stops before its lease ends.
//!
//! Run it: `cargo run --features blocking --example blocking -- redis://127.0.0.1:6379`.

use std::time::Duration;

use dlock::blocking::Lock;
use dlock::{Cap, LockKey, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(30)))?;
    let handle = lock.acquire(&LockKey::new("invoices", "2026-11")?, Duration::from_secs(10))?;
    handle.keep_alive(Cap(Duration::from_secs(600)));
    for invoice in 1..=3 {
        if handle.is_low() {
            return Err("the lease could not be renewed: another program does the rest".into());
        }
        println!("writes invoice {invoice}, with token {}", handle.fence());
    }
    handle.release()?;
    lock.close(Duration::from_secs(5));
    Ok(())
}
