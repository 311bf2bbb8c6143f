//! The exchange over turmoil's simulated TCP, in requests of 17 bytes and answers of 8 bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turmoil::Builder;
use turmoil::net::{TcpListener, TcpStream};

use super::Table;
use crate::Shape;

const PORT: u16 = 6379;

/// Runs the exchange once at the latencies of our links, and returns the number of calls that were answered.
pub(crate) fn with_our_latencies(shape: Shape, seed: u64) -> u64 {
    let mut builder = Builder::new();
    builder.min_message_latency(Duration::from_millis(1)).max_message_latency(Duration::from_millis(4));
    run(builder, shape, seed)
}

/// The same at turmoil's default latencies. turmoil advances time tick by tick, so the cost of a call grows
/// with its duration in the simulation; ours advances from event to event.
pub(crate) fn with_its_defaults(shape: Shape, seed: u64) -> u64 {
    run(Builder::new(), shape, seed)
}

fn run(mut builder: Builder, shape: Shape, seed: u64) -> u64 {
    let mut sim = builder.rng_seed(seed).simulation_duration(Duration::from_secs(600)).build();
    for server in 0..shape.servers {
        sim.host(format!("redis-{server}"), serve);
    }
    let calls = Arc::new(AtomicU64::new(0));
    for worker in 0..shape.workers {
        let calls = Arc::clone(&calls);
        sim.client(format!("worker-{worker}"), async move {
            work(shape, worker, &calls).await?;
            Ok(())
        });
    }
    sim.run().unwrap();
    calls.load(Ordering::Relaxed)
}

async fn serve() -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    let table = Arc::new(Mutex::new(Table::default()));
    loop {
        let (mut stream, _) = listener.accept().await?;
        let table = Arc::clone(&table);
        #[allow(clippy::disallowed_methods, reason = "turmoil's hosts spawn with tokio")]
        tokio::spawn(async move {
            let mut frame = [0; 17];
            while stream.read_exact(&mut frame).await.is_ok() {
                let number = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
                let (key, owner) = (number(1), number(9));
                let answer = {
                    let mut table = table.lock().unwrap();
                    if frame[0] == 1 { table.release(key, owner) } else { table.acquire(key, owner) }
                };
                if stream.write_all(&answer.to_le_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn work(shape: Shape, worker: usize, calls: &AtomicU64) -> turmoil::Result {
    let mut streams = Vec::new();
    for server in 0..shape.servers {
        streams.push(TcpStream::connect((format!("redis-{server}"), PORT)).await?);
    }
    for round in 0..shape.rounds {
        for stream in &mut streams {
            for release in [0, 1] {
                assert_ne!(exchange(stream, release, worker as u64, round as u64).await?, 0);
                calls.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

async fn exchange(stream: &mut TcpStream, release: u8, key: u64, owner: u64) -> std::io::Result<u64> {
    let mut frame = [0; 17];
    frame[0] = release;
    frame[1..9].copy_from_slice(&key.to_le_bytes());
    frame[9..].copy_from_slice(&owner.to_le_bytes());
    stream.write_all(&frame).await?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await?;
    Ok(u64::from_le_bytes(answer))
}
