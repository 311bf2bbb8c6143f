//! Releasing a lease: lost answers, dropped handles and dropped futures.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::support::backend::{Fake, Order};
use crate::support::{World, key, ms};
use dlock::{BackendError, Handle, Lock, Options, ReleaseError, Released, Runtime};

/// Returns a held lease of 2 s with its world and server.
fn held() -> (World, Fake, Handle<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(2000))).unwrap();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    (world, fake, handle)
}

#[test]
fn a_release_returns_whether_the_lease_was_still_owned() {
    let (world, _, handle) = held();
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    let (world, fake, handle) = held();
    fake.on_release([Order::NotOwner]);
    assert_eq!(world.run(handle.release()).unwrap(), Released::NotOwner);
    world.pass(ms(5000));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn a_repeated_release_that_finds_nothing_succeeds() {
    let (world, fake, handle) = held();
    fake.on_release([Order::LoseAnswer, Order::NotOwner]);
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
}

#[test]
fn a_lease_that_expired_before_the_retry_is_not_released() {
    for (start, second) in [(1900, Order::NotOwner), (1300, Order::NotOwnerAfter(ms(300)))] {
        let (world, fake, handle) = held();
        world.pass(ms(start));
        fake.on_release([Order::LoseAnswer, second]);
        assert_eq!(world.run(handle.release()).unwrap(), Released::NotOwner);
    }
}

#[test]
fn an_unconfirmed_release_times_out_and_names_the_ttl() {
    let (world, fake, handle) = held();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 99));
    let start = world.now();
    let error = world.run(handle.release()).unwrap_err();
    let ReleaseError::Unconfirmed { source, .. } = &error else { panic!("{error}") };
    assert_eq!(*source, BackendError::NoAnswer);
    assert!(error.to_string().contains("ends by itself in 2s"), "{error}");
    let timeout = Options::new(ms(2000)).request_timeout;
    assert!(world.now() <= start + timeout * 4, "{:?}", world.now().saturating_since(start));
    assert!(fake.calls("release").len() > 1);
}

#[test]
fn a_lease_with_the_longest_request_timeout_is_released() {
    let world = World::default();
    let mut options = Options::new(ms(2000));
    options.request_timeout = Duration::MAX;
    let lock = Lock::new(Fake::new(&world), options).unwrap();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
}

#[test]
fn an_unconfirmed_release_goes_on_in_the_background_until_it_is_confirmed() {
    let (world, fake, handle) = held();
    let owner = handle.owner().as_str().to_owned();
    fake.on_release(std::iter::repeat_n(Order::LoseAnswer, 5));
    world.run(handle.release()).unwrap_err();
    assert!(fake.calls("release").len() < 5);
    world.pass(ms(1999));
    let calls = fake.calls("release");
    assert_eq!(calls.len(), 6, "sent again until the server answered");
    assert!(calls.iter().all(|call| call.owner == owner));
    assert_eq!(world.tasks(), 0);
}

#[test]
fn a_dropped_handle_is_released_with_its_owner_token() {
    let (world, fake, handle) = held();
    let owner = handle.owner().as_str().to_owned();
    fake.on_release([Order::LoseAnswer]);
    drop(handle);
    world.pass(ms(1999));
    let calls = fake.calls("release");
    assert_eq!(calls.len(), 2, "sent again until the server answered");
    assert!(calls.iter().all(|call| call.owner == owner));
}

#[test]
fn a_dropped_release_goes_on_in_the_background() {
    let (world, fake, handle) = held();
    fake.on_release([Order::After(ms(100))]);
    {
        let mut release = pin!(handle.release());
        assert!(release.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    world.pass(ms(200));
    assert_eq!(fake.calls("release").len(), 2);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn a_handle_moves_between_tasks_and_threads() {
    const fn moves<T: Send + Sync + 'static>() {}
    const { moves::<Handle<Fake>>() };
    let (world, fake, handle) = held();
    let release = std::thread::scope(|scope| scope.spawn(|| world.run(handle.release())).join().unwrap());
    assert_eq!(release.unwrap(), Released::Done);
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn the_future_of_each_operation_can_move_between_threads() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let (world, fake, handle) = held();
    let lock = Lock::new(fake, Options::new(ms(2000))).unwrap();
    world.run(sendable(lock.acquire(&key(), world.now() + ms(1)))).unwrap();
    world.run(sendable(handle.renew())).unwrap();
    world.run(sendable(handle.while_held(dlock::Cap(ms(9)), async {}))).unwrap();
    drop(sendable(handle.lost()));
    world.run(sendable(handle.release())).unwrap();
}
