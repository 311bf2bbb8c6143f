//! Leases without a fencing token: no two of them are valid at once, and none is released or renewed by
//! another owner, beside leases with a token and on each kind of server.

use std::time::Duration;

use dlock::redis::{Redis, RedisOptions};
use dlock::{Lock, LockKey, Options, Runtime};
use sim::servers::redis::{Persistence, RedisHost, Version};
use sim::{Process, Rules, Sim};

use crate::support::share;

const TTL: Duration = Duration::from_millis(1000);

/// A server that keeps its writes, two clients that demand no token, and one that does.
fn world(sim: &mut Sim, version: Version) {
    let key = LockKey::new("orders", "42").unwrap();
    // Simulated times are exact: no two leases may be valid at once.
    sim.rules(Rules { exact: true, ..Rules::default() });
    let host = RedisHost::new().version(version).persistence(Persistence::Always);
    sim.host("redis", host.lock_key(key.owner_key(), key.name())).key(key.name());
    for (name, is_fenced) in [("a", false), ("b", false), ("c", true)] {
        let key = key.clone();
        sim.process(name, move |process: Process| {
            let key = key.clone();
            async move {
                let redis = Redis::new(process.runtime(), "redis:6379", RedisOptions::default()).unwrap();
                let lock = Lock::new(redis, Options::new(TTL)).unwrap();
                for _ in 0..3 {
                    let deadline = process.now() + TTL * 5;
                    // An error costs a round.
                    if is_fenced {
                        if let Ok(handle) = lock.acquire(&key, deadline).await {
                            hold(&process, handle).await;
                        }
                    } else if let Ok(handle) = lock.request(&key).without_token().acquire(deadline).await {
                        hold(&process, handle).await;
                    }
                }
            }
        });
    }
}

/// Works, renews and works again while the lease may be trusted; then releases it.
async fn hold<T>(process: &Process, handle: dlock::Handle<Redis<impl Runtime>, T>) {
    for _ in 0..2 {
        process.sleep(TTL / 2).await;
        let _ = handle.renew().await;
    }
    process.point("worked");
    let _ = handle.release().await;
}

#[test]
fn leases_without_a_token_are_acquitted() {
    for version in [Version::Redis7, Version::Redis84, Version::Valkey9] {
        let world = move |sim: &mut Sim| world(sim, version);
        sim::check(&format!("leases without a token on {version:?}"), world).schedules(share(300)).run();
    }
}

/// The runs do what the test is about: leases of both kinds, whose grants the server stores.
#[test]
fn both_kinds_of_leases_are_granted_in_turn() {
    let mut sim = Sim::new(1);
    world(&mut sim, Version::Redis7);
    let report = sim.run().unwrap();
    let tokens: Vec<u64> = report
        .events
        .iter()
        .filter_map(|event| match event.kind {
            sim::Kind::LeaseAcquired { token, .. } => Some(token),
            _ => None,
        })
        .collect();
    assert_eq!(tokens.iter().filter(|token| **token == 0).count(), 6, "{tokens:?}");
    let mut fenced: Vec<_> = tokens.into_iter().filter(|token| *token != 0).collect();
    fenced.dedup();
    assert_eq!(fenced, [1, 2, 3]);
}
