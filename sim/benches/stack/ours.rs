//! The exchange through the whole stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dlock::redis::{Redis, RedisOptions, Waiting};
use dlock::{Lock, LockKey, Options};
use sim::servers::redis::RedisHost;
use sim::world::runtime::SimRuntime;
use sim::{Control, Sim};

use crate::Shape;

/// Runs the exchange once, on a fresh thread, and returns the number of calls: its acquires and releases.
pub(crate) fn run(shape: Shape, seed: u64) -> u64 {
    let mut sim = Sim::new(seed);
    // Events are recorded and hashed, and nobody is judged.
    sim.verdicts(&[]);
    for number in 0..shape.servers {
        sim.host(&format!("redis-{number}"), RedisHost::new().observer(Arc::new(())));
    }
    for number in 0..shape.workers {
        sim.empty_process(&format!("worker-{number}"));
    }
    let (report, calls) = sim.run_script(|control| exchange(shape, control)).unwrap();
    assert!(report.events.len() >= shape.workers * shape.servers * shape.rounds);
    calls
}

async fn exchange(shape: Shape, control: Control) -> u64 {
    let calls = Arc::new(AtomicU64::new(0));
    let (done, mut finished) = tokio::sync::mpsc::channel(shape.workers);
    for number in 0..shape.workers {
        let worker = control.process(&format!("worker-{number}"));
        let (runtime, calls, done) = (worker.runtime(), Arc::clone(&calls), done.clone());
        worker.spawn(async move {
            work(shape, runtime, number, &calls).await;
            let _ = done.send(()).await;
        });
    }
    for _ in 0..shape.workers {
        finished.recv().await.unwrap();
    }
    calls.load(Ordering::Relaxed)
}

async fn work(shape: Shape, runtime: SimRuntime, number: usize, calls: &AtomicU64) {
    let key = LockKey::new("orders", &number.to_string()).unwrap();
    let lock = |server| {
        // Nobody waits, in the other contenders' exchange neither: a release has nobody to call.
        let mut options = RedisOptions::default();
        options.waiting = Waiting::Polled;
        let backend = Redis::new(runtime.clone(), &format!("redis-{server}:6379"), options);
        Lock::new(backend.unwrap(), Options::new(Duration::from_secs(10))).unwrap()
    };
    let locks: Vec<_> = (0..shape.servers).map(lock).collect();
    for _ in 0..shape.rounds {
        for lock in &locks {
            let handle = lock.try_acquire(&key).await.unwrap();
            handle.release().await.unwrap();
        }
        calls.fetch_add(2 * shape.servers as u64, Ordering::Relaxed);
    }
}
