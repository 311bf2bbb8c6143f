//! Many tasks of one process use different locks of one Redis at the same time, over one connection and in
//! shared calls. Each gets the answer that it would get alone.

use std::time::Duration;

use dlock::redis::{Redis, RedisOptions};
use dlock::{Lock, LockKey, Options};
use sim::faults::Faults;
use sim::servers::redis::{Persistence, RedisHost, Version};
use sim::world::runtime::SimRuntime;
use sim::{Process, Rules, Sim};

use crate::support::share;

const TTL: Duration = Duration::from_millis(1000);
/// The tasks of each process.
const CROWD: usize = 16;
/// Fewer than tasks, so that some wait.
const KEYS: usize = 12;

fn numbered(number: usize) -> LockKey {
    LockKey::new("crowd", &number.to_string()).unwrap()
}

/// A server that keeps its writes, and two crowds.
fn world(sim: &mut Sim, version: Version) {
    // Simulated times are exact: no two leases may be valid at once.
    sim.rules(Rules { exact: true, ..Rules::default() });
    let host = RedisHost::new().version(version).persistence(Persistence::Always);
    let add = |host: RedisHost, key: LockKey| host.lock_key(key.owner_key(), key.name());
    sim.host("redis", (0..KEYS).map(numbered).fold(host, add));
    for number in 0..KEYS {
        sim.key(numbered(number).name());
    }
    for name in ["a", "b"] {
        sim.process(name, |process: Process| async move {
            let redis = Redis::new(process.runtime(), "redis:6379", RedisOptions::default()).unwrap();
            let lock = Lock::new(redis, Options::new(TTL)).unwrap();
            for first in 0..CROWD {
                process.spawn(work(process.clone(), lock.clone(), first));
            }
            process.sleep(TTL * 4).await;
        });
    }
}

/// A task: acquires lock after lock, works, and releases each at the same time as others do theirs.
async fn work(process: Process, lock: Lock<Redis<SimRuntime>>, first: usize) {
    for round in 1..=3 {
        let key = numbered((first + round) % KEYS);
        // An error costs a round.
        let Ok(handle) = lock.acquire(&key, process.now() + TTL * 2).await else { continue };
        let section = process.section_with_token(key.name(), handle.fence().as_u64());
        process.sleep(Duration::from_millis(20)).await;
        drop(section);
        let _ = handle.release().await;
    }
}

#[test]
fn crowds_are_acquitted() {
    // A clock of the server that steps ends leases early, of a crowd or not.
    let is_of_clocks = |verb: &&str| ["step", "slew", "rate"].contains(verb);
    let verbs: Vec<_> = Faults::default().verbs().into_iter().filter(|verb| !is_of_clocks(verb)).collect();
    for version in [Version::Redis7, Version::Redis84] {
        let world = move |sim: &mut Sim| world(sim, version);
        sim::check(&format!("crowds on {version:?}"), world)
            .faults(Faults::default().only(&verbs))
            .schedules(share(100))
            .run();
    }
}

/// The runs do what the test is about: calls of both kinds are shared.
#[test]
fn crowds_share_calls() {
    let mut sim = Sim::new(1);
    world(&mut sim, Version::Redis7);
    sim.record_messages();
    let report = sim.run().unwrap();
    let count = |name: &str| report.messages.iter().filter(|message| message.words.contains(name)).count();
    let counts = (count("acquire_many"), count("release_many"));
    assert!(counts.0 > 3 && counts.1 > 3, "{counts:?}");
}
