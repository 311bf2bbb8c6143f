//! The end of a lock: no acquire goes on, and every lease is released.

use std::future::pending;

use crate::support::backend::{Fake, Order};
use crate::support::{World, key, ms};
use dlock::{
    AcquireError, BackendError, Cap, Instant, Lock, LostError, Options, RenewError, Runtime, TryAcquireError,
};
use futures_util::future::join;

fn lock() -> (World, Fake, Lock<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(1200))).unwrap();
    (world, fake, lock)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(0) + ms(millis)
}

#[test]
fn a_closed_lock_has_released_its_leases_and_grants_none() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    let closed = world.run(lock.close(at(1000)));
    assert_eq!((closed.released, closed.unconfirmed, closed.is_clean), (1, 0, true));
    assert_eq!(fake.calls("release").len(), 1);
    assert!(!handle.is_valid());
    world.run(handle.lost());
    assert_eq!(world.run(handle.renew()).unwrap_err(), RenewError::Lost(LostError::Released));
    // Clones are closed, too.
    let clone = lock.clone();
    assert_eq!(world.run(clone.acquire(&key(), at(5000))).unwrap_err(), AcquireError::Closed);
    assert_eq!(world.run(clone.try_acquire(&key())).unwrap_err(), TryAcquireError::Closed);
    assert_eq!(fake.calls("acquire").len(), 1);
    drop(handle);
    world.pass(ms(5000));
    assert_eq!(fake.calls("release").len(), 1, "the handle releases nothing again");
    assert_eq!(world.run(lock.close(at(9000))).released, 0, "it was closed before");
}

#[test]
fn an_acquire_that_waits_ends_at_once() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(60_000))]);
    let waits = async { lock.acquire(&key(), at(30_000)).await.unwrap_err() };
    let closes = async {
        world.sleep_until(at(300)).await;
        lock.close(at(2000)).await
    };
    let (error, closed) = world.run(join(waits, closes));
    assert_eq!(error, AcquireError::Closed);
    assert!(world.now() < at(400), "{:?}", world.now());
    assert!(closed.is_clean);
    world.pass(ms(60_000));
    assert_eq!(fake.calls("acquire").len(), 1, "it asks no more");
}

#[test]
fn work_under_the_lock_is_dropped() {
    let (world, _, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    let works = handle.while_held(Cap(ms(60_000)), pending::<()>());
    let closes = async {
        world.sleep_until(at(300)).await;
        lock.close(at(2000)).await
    };
    let (ended, closed) = world.run(join(works, closes));
    assert_eq!(ended, Err(LostError::Released));
    assert_eq!(closed.released, 1);
}

#[test]
fn a_release_without_an_answer_is_reported_at_the_deadline() {
    let (world, fake, lock) = lock();
    let _handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 99));
    let closed = world.run(lock.close(at(700)));
    assert_eq!((closed.released, closed.unconfirmed, closed.is_clean), (0, 1, false));
    assert_eq!(world.now(), at(700));
}

#[test]
fn a_release_that_fails_at_first_is_repeated() {
    let (world, fake, lock) = lock();
    let _handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release([Order::Fail(BackendError::Disconnected { reason: "reset".into() })]);
    let closed = world.run(lock.close(at(1000)));
    assert_eq!((closed.released, closed.is_clean), (1, true));
    assert_eq!(fake.calls("release").len(), 2);
}
