//! The reentrant lock: sections of one scope share a lease and its token, and the last to leave releases it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use crate::support::backend::{Fake, Order};
use crate::support::{World, key, ms};
use dlock::{
    AcquireError, BackendError, EnterError, Entered, Left, Lock, LostError, Options, Released, Runtime, Scope,
};
use futures_util::future::join;

/// Returns a world and a lock on a server that obeys a test's orders, whose leases live for 1.2 s.
fn faked() -> (World, Lock<Fake>, Fake) {
    let world = World::default();
    let fake = Fake::new(&world);
    (world, Lock::new(fake.clone(), Options::new(ms(1200))).unwrap(), fake)
}

fn enter(world: &World, scope: &Scope<Fake>) -> Result<Entered<Fake>, EnterError> {
    world.run(scope.acquire(&key(), world.now() + ms(1000)))
}

fn leave(world: &World, section: Entered<Fake>) -> Left {
    world.run(section.leave()).unwrap()
}

#[test]
fn nested_sections_share_one_token_and_one_request() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    let outer = enter(&world, &scope).unwrap();
    let inner = enter(&world, &scope).unwrap();
    let innermost = enter(&world, &scope).unwrap();
    assert_eq!((outer.fence(), outer.owner()), (innermost.fence(), innermost.owner()));
    assert_eq!((outer.depth(), scope.depth(&key())), (3, 3));
    assert_eq!(leave(&world, innermost), Left::Nested { depth: 2 });
    assert_eq!(leave(&world, inner), Left::Nested { depth: 1 });
    assert!(outer.is_valid() && fake.calls("release").is_empty());
    assert_eq!(leave(&world, outer), Left::Released(Released::Done));
    assert_eq!((fake.calls("acquire").len(), fake.calls("release").len()), (1, 1));
}

#[test]
fn sections_may_leave_in_any_order() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    let (outer, inner) = (enter(&world, &scope).unwrap(), enter(&world, &scope).unwrap());
    assert_eq!(leave(&world, outer), Left::Nested { depth: 1 });
    assert!(inner.is_valid() && fake.calls("release").is_empty());
    assert_eq!(leave(&world, inner), Left::Released(Released::Done));
    // The next section acquires anew.
    assert_eq!(enter(&world, &scope).unwrap().fence().as_u64(), 2);
}

#[test]
fn a_lost_lease_refuses_nested_sections_and_is_not_acquired_anew() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    let outer = enter(&world, &scope).unwrap();
    world.pause(ms(1200));
    let error = enter(&world, &scope).unwrap_err();
    assert_eq!(error, EnterError::Lost { key: key(), source: LostError::Expired });
    assert!(error.to_string().contains("orders:42") && error.to_string().contains("validity is over"));
    assert_eq!((fake.calls("acquire").len(), scope.depth(&key())), (1, 1));
    assert!(matches!(leave(&world, outer), Left::Released(_)));
    assert!(enter(&world, &scope).is_ok(), "after the outer section has left");
}

#[test]
fn a_lease_that_is_another_owners_refuses_nested_sections() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    let outer = enter(&world, &scope).unwrap();
    fake.on_renew([Order::NotOwner]);
    assert!(world.run(outer.renew()).is_err());
    let error = enter(&world, &scope).unwrap_err();
    assert_eq!(error, EnterError::Lost { key: key(), source: LostError::NotOwner });
}

#[test]
fn acquires_at_once_in_one_scope_make_one_request() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    fake.on_acquire([Order::After(ms(20))]);
    let deadline = world.now() + ms(1000);
    let (one, two) = world.run(join(scope.acquire(&key(), deadline), scope.acquire(&key(), deadline)));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.fence(), one.depth()), (two.fence(), 2));
    assert_eq!(fake.calls("acquire").len(), 1);
}

#[test]
fn a_failed_acquire_is_made_by_those_who_waited_for_it() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    let refused = BackendError::Refused { message: "no".into(), passing: false };
    fake.on_acquire([Order::Fail(refused.clone())]);
    let deadline = world.now() + ms(1000);
    let (one, two) = world.run(join(scope.acquire(&key(), deadline), scope.acquire(&key(), deadline)));
    assert_eq!(one.unwrap_err(), EnterError::Acquire(AcquireError::Refused(refused)));
    assert_eq!(two.unwrap().fence().as_u64(), 1);
}

#[test]
fn a_dropped_acquire_is_made_by_those_who_waited_for_it() {
    let (world, lock, fake) = faked();
    let (scope, key) = (lock.scope(), key());
    fake.on_acquire([Order::After(ms(500))]);
    let mut first = Box::pin(scope.acquire(&key, world.now() + ms(1000)));
    assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let mut second = pin!(scope.acquire(&key, world.now() + ms(1000)));
    assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(first);
    assert!(world.run(second).is_ok());
    assert_eq!(fake.calls("acquire").len(), 2);
}

#[test]
fn who_waits_for_an_acquire_of_the_scope_gives_up_at_its_own_deadline() {
    let (world, lock, fake) = faked();
    let (scope, key) = (lock.scope(), key());
    fake.on_acquire([Order::After(ms(500))]);
    let patient = scope.acquire(&key, world.now() + ms(1000));
    let hurried = scope.acquire(&key, world.now() + ms(100));
    let (one, two) = world.run(join(patient, hurried));
    assert_eq!(two.unwrap_err(), EnterError::Busy { key: key.clone() });
    assert_eq!(one.unwrap().depth(), 1);
}

#[test]
fn dropped_sections_count_as_left() {
    let (world, lock, fake) = faked();
    let scope = lock.scope();
    let (outer, inner) = (enter(&world, &scope).unwrap(), enter(&world, &scope).unwrap());
    drop(inner);
    world.pass(ms(10));
    assert!(outer.is_valid() && fake.calls("release").is_empty());
    drop((scope, outer));
    assert!(world.run(lock.cleaned_up(world.now() + ms(100))));
    assert_eq!(fake.calls("release").len(), 1);
}

#[test]
fn a_leave_that_is_dropped_releases_in_the_background() {
    let (world, lock, fake) = faked();
    let outer = enter(&world, &lock.scope()).unwrap();
    fake.on_release([Order::After(ms(50))]);
    let mut leaving = Box::pin(outer.leave());
    assert!(leaving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(leaving);
    assert!(world.run(lock.cleaned_up(world.now() + ms(1000))));
    assert_eq!(fake.calls("release").len(), 2, "one was dropped, one was sent in the background");
}

#[test]
fn another_scope_waits_like_a_stranger() {
    let (world, lock, fake) = faked();
    let (one, two) = (lock.scope(), lock.scope());
    let held = enter(&world, &one).unwrap();
    fake.on_acquire((0..100).map(|_| Order::Taken(None)));
    let error = enter(&world, &two).unwrap_err();
    assert!(matches!(error, EnterError::Acquire(AcquireError::Taken { .. })), "{error}");
    assert!(held.is_valid());
}

#[test]
fn a_closed_lock_refuses_nested_sections() {
    let (world, lock, _) = faked();
    let scope = lock.scope();
    let outer = enter(&world, &scope).unwrap();
    world.run(lock.close(world.now() + ms(100)));
    let error = enter(&world, &scope).unwrap_err();
    assert_eq!(error, EnterError::Lost { key: key(), source: LostError::Released });
    assert!(!outer.is_valid());
}
