//! The exchange through the whole stack.
//!
//! It builds its world directly, without `sim::Sim`. A run of `Sim` attributes panics, knows faults and ends
//! its servers, which costs 1 to 3 % here, and the other contenders have nothing like it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dlock::redis::{Redis, RedisOptions, Waiting};
use dlock::{Lock, LockKey, Options};
use sim::entropy::Entropy;
use sim::record;
use sim::servers::host::Host;
use sim::servers::redis::RedisHost;
use sim::world::World;
use sim::world::machine::WorldMachine;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;

use crate::Shape;

/// Runs the exchange once, on a fresh thread, and returns the number of calls: its acquires and releases.
pub(crate) fn run(shape: Shape, seed: u64) -> u64 {
    std::thread::spawn(move || {
        let runtime = madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
        runtime.block_on(exchange(shape, seed))
    })
    .join()
    .unwrap()
}

async fn exchange(shape: Shape, seed: u64) -> u64 {
    let names: Vec<String> = (0..shape.servers)
        .map(|number| format!("redis-{number}"))
        .chain((0..shape.workers).map(|number| format!("worker-{number}")))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(Entropy::new(seed), &names, (Duration::from_millis(1), Duration::from_millis(4)));
    record::start(&world, |_| {});
    for number in 0..shape.servers {
        let id = world.find(&format!("redis-{number}")).unwrap();
        let host = RedisHost::new().observer(Arc::new(()));
        world.spawn(id, host.start(WorldMachine::new(&world, id)));
    }
    let calls = Arc::new(AtomicU64::new(0));
    let (done, mut finished) = tokio::sync::mpsc::channel(shape.workers);
    for number in 0..shape.workers {
        let id = world.find(&format!("worker-{number}")).unwrap();
        let (world, calls, done) = (world.clone(), Arc::clone(&calls), done.clone());
        world.clone().spawn(id, async move {
            work(shape, world, id, number, &calls).await;
            let _ = done.send(()).await;
        });
    }
    for _ in 0..shape.workers {
        finished.recv().await.unwrap();
    }
    let recorded = record::finish().unwrap();
    assert!(recorded.events.len() >= shape.workers * shape.servers * shape.rounds);
    world.end().await;
    calls.load(Ordering::Relaxed)
}

async fn work(shape: Shape, world: World, id: ProcessId, number: usize, calls: &AtomicU64) {
    let runtime = SimRuntime::new(&world, id);
    let key = LockKey::new("orders", &number.to_string()).unwrap();
    let lock = |server| {
        // No acquire waits, here or in the other contenders' exchange, so a release has no waiter to wake.
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
