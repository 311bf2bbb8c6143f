//! The end of a lock: no acquire goes on, and every lease is released.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};

use crate::support::backend::{Fake, Order};
use crate::support::{World, key, ms};
use dlock::{
    AcquireError, BackendError, Cap, Instant, Lock, LostError, Options, Released, RenewError, Runtime,
    TryAcquireError,
};
use futures_util::future::join;

fn lock() -> (World, Fake, Lock<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(1200))).unwrap();
    (world, fake, lock)
}

/// Begins to close a lock when it is woken, as another thread may at that moment.
struct Closer {
    lock: Lock<Fake>,
    has_ended: OnceLock<bool>,
}

impl Wake for Closer {
    fn wake(self: Arc<Self>) {
        let close = pin!(self.lock.close(at(1000)));
        let polled = close.poll(&mut Context::from_waker(Waker::noop()));
        self.has_ended.set(polled.is_ready()).unwrap();
    }
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
fn an_acquire_in_another_task_is_cleaned_up_before_the_end() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::Queued(7, ms(60_000))]);
    let waiter = lock.clone();
    world.spawn(async move { drop(waiter.acquire(&key(), at(30_000)).await) });
    world.pass(ms(300));
    let closed = world.run(lock.close(at(2000)));
    // Nothing runs any more: its place in the queue has been released by now.
    assert_eq!(fake.calls("release").len(), 1);
    assert!(closed.is_clean);
    assert_eq!(world.now(), at(300));
}

#[test]
fn a_request_without_an_answer_ends_at_once() {
    let (world, fake, lock) = lock();
    fake.on_acquire([Order::LoseAnswer]);
    let requester = lock.clone();
    world.spawn(async move {
        let error = requester.try_acquire(&key()).await.unwrap_err();
        assert_eq!(error, TryAcquireError::Closed);
    });
    world.pass(ms(100));
    let closed = world.run(lock.close(at(2000)));
    assert_eq!(fake.calls("release").len(), 1, "the server may have granted it");
    assert!(closed.is_clean);
    assert_eq!((world.now(), world.tasks()), (at(100), 0));
}

#[test]
fn an_acquire_that_is_not_polled_delays_no_release() {
    let (world, fake, lock) = lock();
    let _handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_acquire([Order::Queued(7, ms(60_000))]);
    let wanted = key();
    let mut waits = pin!(lock.acquire(&wanted, at(30_000)));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let closed = world.run(lock.close(at(700)));
    assert_eq!((closed.released, closed.unconfirmed, closed.is_clean), (1, 0, false));
    assert_eq!(fake.calls("release").iter().map(|call| call.at).collect::<Vec<_>>(), [at(0)]);
    assert_eq!(world.now(), at(700));
    assert_eq!(world.run(waits).unwrap_err(), AcquireError::Closed);
}

#[test]
fn a_handle_released_after_the_end_returns_how_its_lease_ended() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    assert_eq!(world.run(lock.close(at(1000))).released, 1);
    // The server no longer knows the lease, and its validity is over.
    world.pass(ms(2000));
    fake.on_release([Order::NotOwner]);
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn a_handle_released_at_the_same_time_sends_no_second_request() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    fake.on_release([Order::After(ms(100)), Order::NotOwner]);
    let (closed, released) = world.run(join(lock.close(at(1000)), handle.release()));
    assert_eq!((closed.released, released), (1, Ok(Released::Done)));
    assert_eq!(fake.calls("release").len(), 1);
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

#[test]
fn a_close_in_the_middle_of_a_drop_waits_for_its_release() {
    let (world, fake, lock) = lock();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    let closer = Arc::new(Closer { lock: lock.clone(), has_ended: OnceLock::new() });
    let mut lost = Box::pin(handle.lost());
    assert!(lost.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&closer)))).is_pending());
    drop(handle);
    assert_eq!(closer.has_ended.get(), Some(&false));
    assert!(world.run(lock.close(at(1000))).is_clean);
    assert_eq!(fake.calls("release").len(), 1);
}
