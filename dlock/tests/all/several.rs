//! Several keys at once: their order, what is refused, and that a failure leaves no key locked.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::memory::Memory;
use crate::support::backend::{Fake, Order};
use crate::support::{World, ms};
use dlock::{
    AcquireAllError, AcquireError, BackendError, Cap, Handles, KeyLostError, Lock, LockKey, LostError,
    Options, ReleaseError, Released, Runtime, TryAcquireError,
};
use futures_util::future::join;

const LONG: Cap = Cap(std::time::Duration::from_secs(3600));

fn account(id: &str) -> LockKey {
    LockKey::new("accounts", id).unwrap()
}

/// Returns a world and a lock on a server in memory, whose leases live for 1.2 s.
fn in_memory() -> (World, Lock<Memory<World>>) {
    let world = World::default();
    let lock = Lock::new(Memory::new(world.clone()), Options::new(ms(1200))).unwrap();
    (world, lock)
}

/// Returns a world and a lock on a server that obeys a test's orders.
fn faked() -> (World, Lock<Fake>, Fake) {
    let world = World::default();
    let fake = Fake::new(&world);
    (world, Lock::new(fake.clone(), Options::new(ms(1200))).unwrap(), fake)
}

fn all(world: &World, lock: &Lock<Fake>, ids: &[&str]) -> Result<Handles<Fake>, AcquireAllError> {
    let keys: Vec<_> = ids.iter().map(|id| account(id)).collect();
    world.run(lock.acquire_all(&keys, world.now() + ms(10_000)))
}

fn keys_of(fake: &Fake, kind: &str) -> Vec<String> {
    fake.calls(kind).into_iter().map(|call| call.key).collect()
}

#[test]
fn keys_are_acquired_in_the_order_of_their_names() {
    for ids in [["3", "7", "10"], ["7", "10", "3"], ["10", "3", "7"]] {
        let (world, lock, fake) = faked();
        let handles = all(&world, &lock, &ids).unwrap();
        let ordered = ["accounts:10", "accounts:3", "accounts:7"];
        assert_eq!(keys_of(&fake, "acquire"), ordered, "given as {ids:?}");
        let fences: Vec<_> = handles.fences().map(|(key, token)| (key.name(), token.as_u64())).collect();
        assert_eq!(fences, [(ordered[0], 1), (ordered[1], 2), (ordered[2], 3)]);
        assert_eq!(handles.fence(&account("3")).unwrap().as_u64(), 2);
        assert_eq!(handles.fence(&account("4")), None);
    }
}

#[test]
fn no_key_and_a_key_given_twice_are_refused_before_any_request() {
    let (world, lock, fake) = faked();
    assert_eq!(all(&world, &lock, &[]).unwrap_err(), AcquireAllError::NoKey);
    let twice = all(&world, &lock, &["7", "3", "7"]).unwrap_err();
    assert_eq!(twice, AcquireAllError::Duplicate { key: account("7") });
    assert!(twice.to_string().contains("accounts:7"), "{twice}");
    assert!(fake.calls("acquire").is_empty());
}

#[test]
fn a_key_that_is_not_acquired_releases_those_before_it() {
    let (world, lock) = in_memory();
    let other = world.run(lock.try_acquire(&account("7"))).unwrap();
    other.keep_alive(LONG);
    let keys = [account("7"), account("3")];
    let error = world.run(lock.acquire_all(&keys, world.now() + ms(5000))).unwrap_err();
    assert!(
        matches!(&error, AcquireAllError::NotAcquired { key, source: AcquireError::Taken { .. } }
            if *key == account("7")),
        "{error}"
    );
    assert_eq!(world.now().as_nanos(), 5_000_000_000, "one deadline for all");
    assert!(world.run(lock.cleaned_up(world.now() + ms(10))));
    let first = world.run(lock.try_acquire(&account("3"))).unwrap();
    assert_eq!(first.fence().as_u64(), 2, "the first key had been acquired");
}

#[test]
fn leases_are_released_newest_first() {
    let (world, lock, fake) = faked();
    let handles = all(&world, &lock, &["1", "2", "3"]).unwrap();
    let released = world.run(handles.release()).unwrap();
    let newest_first = ["accounts:3", "accounts:2", "accounts:1"];
    assert_eq!(keys_of(&fake, "release"), newest_first);
    assert!(
        released.iter().map(|(key, how)| (key.name(), *how)).eq(newest_first.map(|k| (k, Released::Done)))
    );
    drop(all(&world, &lock, &["1", "2", "3"]).unwrap());
    assert!(world.run(lock.cleaned_up(world.now() + ms(10))));
    assert_eq!(keys_of(&fake, "release")[3..], newest_first, "dropped");
}

#[test]
fn a_dropped_acquire_releases_what_it_has() {
    let (world, lock) = in_memory();
    let other = world.run(lock.try_acquire(&account("7"))).unwrap();
    let keys = [account("3"), account("7")];
    let mut acquire = Box::pin(lock.acquire_all(&keys, world.now() + ms(60_000)));
    assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let taken = world.run(lock.try_acquire(&account("3"))).unwrap_err();
    assert!(matches!(taken, TryAcquireError::Taken { .. }), "the first key is held: {taken}");
    drop(acquire);
    assert!(world.run(lock.cleaned_up(world.now() + ms(10))));
    world.run(lock.try_acquire(&account("3"))).unwrap();
    drop(other);
}

#[test]
fn earlier_leases_are_renewed_while_a_later_key_is_waited_for() {
    let (world, lock) = in_memory();
    let other = world.run(lock.try_acquire(&account("7"))).unwrap();
    other.keep_alive(LONG);
    let held_on = async {
        world.sleep_until(world.now() + ms(6000)).await;
        other.release().await.unwrap();
    };
    let keys = [account("3"), account("7")];
    let acquire = lock.acquire_all(&keys, world.now() + ms(60_000));
    let (handles, ()) = world.run(join(acquire, held_on));
    let handles = handles.unwrap();
    assert!(world.now().as_nanos() >= 6_000_000_000);
    assert_eq!(handles.fence(&account("3")).unwrap().as_u64(), 1, "its first lease");
    assert!(handles.remaining() > ms(700), "{:?}", handles.remaining());
}

#[test]
fn a_lease_that_is_lost_meanwhile_refuses_the_whole() {
    let (world, lock, fake) = faked();
    fake.on_acquire([Order::After(ms(0))]);
    fake.on_acquire(std::iter::repeat_n(Order::Taken(None), 99));
    fake.on_renew([Order::NotOwner]);
    let error = all(&world, &lock, &["1", "2"]).unwrap_err();
    let lost = KeyLostError { key: account("1"), source: LostError::NotOwner };
    assert_eq!(error, AcquireAllError::Lost(lost));
    assert_eq!(world.now().as_nanos(), 400_000_000, "at the first renewal");
}

#[test]
fn a_lease_that_ends_in_a_pause_refuses_the_whole() {
    let (world, lock, fake) = faked();
    let pauser = world.clone();
    fake.on_acquire([Order::After(ms(0)), Order::After(ms(100))]);
    let keys = [account("1"), account("2")];
    let mut acquire = pin!(lock.acquire_all(&keys, world.now() + ms(60_000)));
    assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(fake.calls("acquire").len(), 2);
    pauser.pause(ms(1190));
    let lost = KeyLostError { key: account("1"), source: LostError::Expired };
    assert_eq!(world.run(acquire).unwrap_err(), AcquireAllError::Lost(lost));
}

#[test]
fn a_short_lease_of_an_earlier_key_refuses_the_whole() {
    let world = World::default();
    let fake = Fake::new(&world);
    let mut options = Options::new(ms(1200));
    options.min_validity = ms(900);
    let lock = Lock::new(fake.clone(), options).unwrap();
    fake.on_acquire([Order::After(ms(0)), Order::After(ms(350))]);
    let error = all(&world, &lock, &["1", "2"]);
    assert!(
        matches!(error, Err(AcquireAllError::NotAcquired { source: AcquireError::Late, .. })),
        "{error:?}"
    );
}

#[test]
fn a_deadline_that_passes_between_two_keys_is_named() {
    let (world, lock, fake) = faked();
    fake.on_acquire([Order::After(ms(40)), Order::LoseAnswer]);
    let keys = [account("1"), account("2")];
    let error = world.run(lock.acquire_all(&keys, world.now() + ms(100))).unwrap_err();
    assert!(error.to_string().starts_with("no lock on accounts:2: "), "{error}");
    assert_eq!(world.now().as_nanos(), 100_000_000);
}

#[test]
fn a_closed_lock_ends_the_acquire() {
    let (world, lock, fake) = faked();
    fake.on_acquire([Order::After(ms(0))]);
    fake.on_acquire(std::iter::repeat_n(Order::Taken(None), 99));
    let keys = [account("1"), account("2")];
    let acquire = lock.acquire_all(&keys, world.now() + ms(60_000));
    let close = async {
        world.sleep_until(world.now() + ms(50)).await;
        lock.close(world.now() + ms(100)).await
    };
    let (acquired, closed) = world.run(join(acquire, close));
    let error = acquired.unwrap_err();
    assert!(matches!(error, AcquireAllError::NotAcquired { source: AcquireError::Closed, .. }), "{error}");
    assert!(closed.is_clean);
}

#[test]
fn the_first_lost_lease_ends_the_work_and_is_named() {
    let (world, lock, fake) = faked();
    let handles = all(&world, &lock, &["1", "2"]).unwrap();
    fake.on_renew([Order::After(ms(0)), Order::NotOwner]);
    let lost = handles.lost();
    let ended = world.run(handles.while_held(LONG, pending::<()>())).unwrap_err();
    assert_eq!(ended, KeyLostError { key: account("2"), source: LostError::NotOwner });
    assert_eq!(world.run(lost), account("2"));
    assert!(!handles.is_valid() && handles.is_low());
    assert!(handles.all()[0].is_valid());
}

#[test]
fn work_is_not_polled_after_a_pause_past_the_validity() {
    let (world, lock, _) = faked();
    let handles = all(&world, &lock, &["1", "2"]).unwrap();
    let (pauser, mut polls) = (world.clone(), 0);
    let work = poll_fn(|cx| {
        // The process pauses inside the work, for longer than the leases; the work can run again at once.
        polls += 1;
        pauser.pause(ms(if polls == 1 { 5000 } else { 0 }));
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let ended = world.run(handles.while_held(LONG, work)).unwrap_err();
    assert_eq!(ended, KeyLostError { key: account("1"), source: LostError::Expired });
    assert_eq!(polls, 1);
}

#[test]
fn all_leases_are_renewed_while_the_work_goes_on() {
    let (world, lock) = in_memory();
    let keys = [account("1"), account("2")];
    let handles = world.run(lock.acquire_all(&keys, world.now() + ms(100))).unwrap();
    world.run(handles.while_held(LONG, world.sleep_until(world.now() + ms(5000)))).unwrap();
    assert!(handles.remaining() > ms(700));
    handles.keep_alive(LONG);
    world.pass(ms(5000));
    assert!(handles.is_valid() && !handles.is_low());
}

#[test]
fn a_release_lists_the_keys_that_were_not_confirmed() {
    let (world, lock, fake) = faked();
    let handles = all(&world, &lock, &["1", "2"]).unwrap();
    let broken = || Order::Fail(BackendError::Disconnected { reason: "reset".into() });
    // The release of key 2 comes first.
    fake.on_release([Order::NotOwner, broken()]);
    fake.on_release(std::iter::repeat_with(broken).take(99));
    let error = world.run(handles.release()).unwrap_err();
    assert_eq!(error.released, [(account("2"), Released::NotOwner)]);
    assert!(
        matches!(&error.unconfirmed[..], [(key, ReleaseError::Unconfirmed { .. })] if *key == account("1"))
    );
    assert!(error.to_string().contains("1 may still be locked; accounts:1: "), "{error}");
}

#[test]
fn leases_that_are_left_end_by_their_ttl() {
    let (world, lock) = in_memory();
    let keys = [account("1"), account("2")];
    world.run(lock.acquire_all(&keys, world.now() + ms(100))).unwrap().leave();
    world.pass(ms(1100));
    assert!(world.run(lock.try_acquire(&account("2"))).is_err());
    world.pass(ms(100));
    world.run(lock.try_acquire(&account("2"))).unwrap();
}
