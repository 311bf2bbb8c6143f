//! Events and metrics of a lock: one event for each transition, each number under its name.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "all/support/mod.rs"]
mod support;

use std::future::Future;
use std::task::{Context, Waker};

use dlock::{BackendError, Cap, Lock, LockKey, Options, Released, Runtime};
use support::backend::{Fake, Order};
use support::observe::{Events, Meter};
use support::{World, key, ms};

/// Runs `story` with its own subscriber and recorder; returns the recorded metrics.
fn observed(story: impl FnOnce(&World, &Fake, &Lock<Fake>, &Events)) -> Meter {
    let world = World::default();
    let fake = Fake::new(&world);
    let mut options = Options::new(ms(1200));
    options.instance = Some("worker-4".into());
    let lock = Lock::new(fake.clone(), options).unwrap();
    let (events, meter) = (Events::default(), Meter::default());
    tracing::subscriber::with_default(events.clone(), || {
        metrics::with_local_recorder(&meter, || story(&world, &fake, &lock, &events));
    });
    meter
}

#[test]
fn a_lease_without_failures_is_reported() {
    let meter = observed(|world, fake, lock, events| {
        fake.on_acquire([Order::Taken(None), Order::After(ms(5))]);
        let handle = world.run(lock.acquire(&key(), world.now() + ms(5000))).unwrap();
        assert_eq!(events.field("valid_micros").as_deref(), Some("1181000"));
        assert_eq!(events.field("owner_token_prefix").as_deref(), Some(handle.owner().prefix()));
        assert_eq!(events.field("resource_id_hash").as_deref(), Some(key().id_hash()));
        world.run(handle.renew()).unwrap();
        world.pass(ms(100));
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        let expected = [
            "lease_requested",
            "lease_acquired",
            "lease_renewed",
            "lease_release_requested",
            "lease_released done",
        ];
        assert_eq!(events.take(), expected);
    });
    assert_eq!(meter.sum("redis_lease_acquire_attempts_total{fake,orders}"), 1.0);
    assert_eq!(meter.sum("redis_lease_acquire_total{fake,orders,done}"), 1.0);
    assert_eq!(meter.sum("redis_lease_contention_total{fake,orders}"), 1.0);
    assert_eq!(meter.sum("redis_lease_extend_total{fake,orders,done}"), 1.0);
    assert_eq!(meter.sum("redis_lease_release_total{fake,orders,done}"), 1.0);
    assert_eq!(meter.sum("redis_lease_held_ms{fake,orders}"), 105.0);
    assert!((30.0..=55.0).contains(&meter.sum("redis_lease_acquire_latency_ms{fake,orders}")));
    // Rare counters are shown at zero, so that a monitor sees their first increase.
    for rare in ["redis_lease_lost_total", "redis_lease_stale_release_total", "release_by_non_owner_total"] {
        let series = format!("{rare}{{fake,orders}}");
        assert!(meter.has(&series) && meter.sum(&series) == 0.0, "{rare}");
    }
}

#[test]
fn an_acquire_is_counted_when_it_begins() {
    let (world, meter) = (World::default(), Meter::default());
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(1200))).unwrap();
    fake.on_acquire([Order::After(ms(200))]);
    metrics::with_local_recorder(&meter, || {
        let wanted = key();
        let mut acquire = Box::pin(lock.try_acquire(&wanted));
        assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(meter.sum("redis_lease_acquire_attempts_total{fake,orders}"), 1.0);
        assert!(!meter.has("redis_lease_acquire_total{fake,orders,done}"));
        world.run(acquire).unwrap().leave();
    });
    assert_eq!(meter.sum("redis_lease_acquire_attempts_total{fake,orders}"), 1.0);
    assert_eq!(meter.sum("redis_lease_acquire_total{fake,orders,done}"), 1.0);
}

#[test]
fn leases_held_now_are_counted_whatever_ends_them() {
    let meter = Meter::default();
    let (world, seen) = (World::default(), || meter.sum("redis_lease_held{fake,orders}"));
    let lock = Lock::new(Fake::new(&world), Options::new(ms(1200))).unwrap();
    let acquire = || world.run(lock.try_acquire(&key())).unwrap();
    metrics::with_local_recorder(&meter, || {
        assert!(!meter.has("redis_lease_held{fake,orders}"));
        let (released, dropped, left, lost) = (acquire(), acquire(), acquire(), acquire());
        assert_eq!(seen(), 4.0);
        world.run(released.release()).unwrap();
        assert_eq!(seen(), 3.0);
        drop(dropped);
        assert_eq!(seen(), 2.0);
        left.leave();
        assert_eq!(seen(), 1.0);
        world.run(lost.lost());
        assert_eq!(seen(), 0.0);
        // The release of a lost lease ends no second hold.
        world.run(lost.release()).unwrap();
        assert_eq!(seen(), 0.0);
    });
    assert_eq!(meter.samples("redis_lease_held_ms{fake,orders}"), 4);
}

#[test]
fn leases_held_past_their_first_ttl_are_counted() {
    let meter = Meter::default();
    let (world, seen) = (World::default(), || meter.sum("redis_lease_held_past_ttl{fake,orders}"));
    let lock = Lock::new(Fake::new(&world), Options::new(ms(1200))).unwrap();
    metrics::with_local_recorder(&meter, || {
        let long = world.run(lock.try_acquire(&key())).unwrap();
        long.keep_alive(Cap(ms(9000)));
        world.pass(ms(1100));
        assert_eq!(seen(), 0.0);
        world.pass(ms(3000));
        assert_eq!(seen(), 1.0);
        world.run(long.release()).unwrap();
        assert_eq!(seen(), 0.0);
        let short = world.run(lock.try_acquire(&key())).unwrap();
        world.run(short.renew()).unwrap();
        world.run(short.release()).unwrap();
        assert_eq!(seen(), 0.0);
    });
}

#[test]
fn a_lost_and_then_released_lease_is_reported() {
    let meter = observed(|world, fake, lock, events| {
        let handle = world.run(lock.try_acquire(&key())).unwrap();
        let reset = Order::Fail(BackendError::Disconnected { reason: "reset".into() });
        fake.on_renew([reset, Order::NotOwner]);
        fake.on_release([Order::NotOwner]);
        world.run(handle.while_held(Cap(ms(9000)), std::future::pending::<()>())).unwrap_err();
        world.run(handle.lost());
        assert!(world.run(handle.renew()).is_err());
        assert_eq!(world.run(handle.release()).unwrap(), Released::NotOwner);
        let expected = [
            "lease_requested",
            "lease_acquired",
            "lease_renew_failed error",
            "lease_renew_failed not_owner",
            "lease_lost not_owner",
            "lease_release_requested",
            "lease_released not_owner",
        ];
        assert_eq!(events.take(), expected);
    });
    assert_eq!(meter.sum("redis_lease_lost_total{fake,orders}"), 1.0);
    assert_eq!(meter.sum("redis_lease_extend_total{fake,orders,not_owner}"), 1.0);
    assert_eq!(meter.sum("redis_lease_release_total{fake,orders,not_owner}"), 1.0);
    assert_eq!(meter.sum("redis_lease_stale_release_total{fake,orders}"), 1.0);
    assert_eq!(meter.sum("release_by_non_owner_total{fake,orders}"), 1.0);
    assert_eq!(meter.sum("redis_lease_held{fake,orders}"), 0.0);
    assert_eq!(meter.sum("redis_lease_held_ms{fake,orders}"), 450.0);
}

#[test]
fn a_lease_that_its_lock_released_is_reported_once() {
    let meter = observed(|world, _, lock, events| {
        let handle = world.run(lock.try_acquire(&key())).unwrap();
        world.run(lock.close(world.now() + ms(1000)));
        assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
        let expected =
            ["lease_requested", "lease_acquired", "lease_release_requested", "lease_released done"];
        assert_eq!(events.take(), expected);
    });
    assert_eq!(meter.sum("redis_lease_release_total{fake,orders,done}"), 1.0);
}

#[test]
fn a_lease_ended_by_its_cap_is_reported_lost() {
    let meter = observed(|world, _, lock, events| {
        let handle = world.run(lock.try_acquire(&key())).unwrap();
        handle.keep_alive(Cap(ms(100)));
        world.pass(ms(2000));
        assert_eq!(events.take(), ["lease_requested", "lease_acquired", "lease_lost expired"]);
        drop(handle);
        world.pass(ms(10));
        assert_eq!(events.take(), ["lease_release_requested", "lease_released done"]);
    });
    assert_eq!(meter.sum("redis_lease_lost_total{fake,orders}"), 1.0);
}

#[test]
fn failed_acquires_are_reported() {
    let meter = observed(|world, fake, lock, events| {
        fake.on_acquire(std::iter::repeat_n(Order::Taken(None), 9));
        assert!(world.run(lock.acquire(&key(), world.now() + ms(30))).is_err());
        assert!(world.run(lock.acquire(&key(), world.now())).is_err());
        drop(lock.try_acquire(&key()));
        let expected = [
            "lease_requested",
            "lease_not_acquired contended",
            "lease_requested",
            "lease_not_acquired timeout",
        ];
        assert_eq!(events.take(), expected, "a future that was never polled emits nothing");
    });
    assert_eq!(meter.sum("redis_lease_acquire_attempts_total{fake,orders}"), 2.0);
    assert_eq!(meter.sum("redis_lease_acquire_total{fake,orders,contended}"), 1.0);
    assert_eq!(meter.sum("redis_lease_acquire_total{fake,orders,timeout}"), 1.0);
}

#[test]
fn a_cancelled_acquire_is_reported() {
    let meter = observed(|world, fake, lock, events| {
        fake.on_acquire([Order::LoseAnswer]);
        let wanted = key();
        let mut acquire = Box::pin(lock.acquire(&wanted, world.now() + ms(5000)));
        world.run(std::future::poll_fn(|cx| {
            assert!(acquire.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        }));
        drop(acquire);
        world.pass(ms(10));
        assert_eq!(events.take(), ["lease_requested", "lease_not_acquired cancelled"]);
        assert_eq!(fake.calls("release").len(), 1);
    });
    assert_eq!(meter.sum("redis_lease_acquire_total{fake,orders,cancelled}"), 1.0);
}

#[test]
fn events_contain_no_full_id_or_owner_token() {
    observed(|world, _, lock, events| {
        let secret = LockKey::new("accounts", "jane@example.org").unwrap();
        let handle = world.run(lock.try_acquire(&secret)).unwrap();
        for field in ["resource_id_hash", "owner_token_prefix", "resource_type"] {
            let text = events.field(field).unwrap();
            assert!(!text.contains("jane") && text != handle.owner().as_str(), "{field} is {text}");
        }
    });
}
