//! Renewal: its times, and the end of the work when it fails.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::Poll;

use crate::support::backend::{Fake, InSession, Order};
use crate::support::{World, key, ms};
use dlock::{
    BackendError, Cap, Handle, Instant, Lock, LostError, Options, OptionsError, Released, RenewError,
    Runtime, TryAcquireError,
};
use futures_util::future::{Either, join, select};

const LONG: Cap = Cap(std::time::Duration::from_secs(3600));

/// Returns a held lease of 1.2 s, granted at 0; its validity ends at 1186 ms unless it is renewed.
fn held() -> (World, Fake, Handle<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(1200))).unwrap();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    (world, fake, handle)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(0) + ms(millis)
}

fn unreachable() -> Order {
    Order::Fail(BackendError::Disconnected { reason: "reset".into() })
}

#[test]
fn the_watchdog_renews_every_third_of_the_ttl() {
    let (world, fake, handle) = held();
    let work = world.sleep_until(at(3000));
    world.run(handle.while_held(LONG, work)).unwrap();
    let times: Vec<_> = fake.calls("renew").iter().map(|call| call.at).collect();
    assert_eq!(times, [400, 800, 1200, 1600, 2000, 2400, 2800].map(at));
    assert_eq!(handle.valid_until(), at(2800 + 1186));
    world.pass(ms(5000));
    assert_eq!(fake.calls("renew").len(), 7, "the work has ended");
}

/// Nobody polls the work of a process that hangs, and its session goes on.
#[test]
fn a_lease_of_a_session_that_is_kept_alive_ends_after_its_cap() {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(InSession(fake.clone()), Options::new(ms(1200))).unwrap();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    handle.keep_alive(Cap(ms(1000)));
    world.pass(ms(1900));
    assert_eq!(fake.calls("release").len(), 0, "the lease is valid until 1986 ms");
    world.pass(ms(200));
    assert_eq!(fake.calls("release").len(), 1, "nobody has released it");
    assert!(!handle.is_valid());
}

#[test]
fn the_work_is_dropped_exactly_when_the_validity_ends() {
    let (world, fake, handle) = held();
    fake.on_renew(std::iter::repeat_n(Order::LoseAnswer, 99));
    let guard = Arc::new(());
    let inside = Arc::clone(&guard);
    let work = async move {
        let _inside = inside;
        pending::<()>().await;
    };
    let lost = world.run(handle.while_held(LONG, work)).unwrap_err();
    assert_eq!(lost, LostError::Expired);
    assert_eq!(world.now(), at(1186));
    assert_eq!(Arc::strong_count(&guard), 1, "the work was dropped");
    assert!(fake.calls("renew").len() > 1, "a failed renewal is tried again");
    assert!(!handle.is_valid());
}

#[test]
fn the_work_is_told_when_a_sixth_of_the_ttl_is_left_and_dropped_at_its_end() {
    let (world, fake, handle) = held();
    fake.on_renew(std::iter::repeat_n(Order::LoseAnswer, 99));
    let told = Arc::new(AtomicU64::new(0));
    let (noted, clock, warned) = (Arc::clone(&told), world.clone(), &handle);
    let work = async move {
        assert!(!warned.is_low());
        warned.low().await;
        assert!(warned.is_low() && warned.is_valid());
        noted.store(clock.now().as_nanos(), Ordering::SeqCst);
        pending::<()>().await;
    };
    assert_eq!(world.run(handle.while_held(LONG, work)).unwrap_err(), LostError::Expired);
    assert_eq!(Instant::from_nanos(told.load(Ordering::SeqCst)), at(1186 - 200));
    assert_eq!(world.now(), at(1186));
    assert!(handle.is_low());
}

#[test]
fn work_whose_lease_is_renewed_is_not_told() {
    let (world, _, handle) = held();
    let (low, work) = (pin!(handle.low()), pin!(world.sleep_until(at(3000))));
    let ended = world.run(handle.while_held(LONG, select(low, work))).unwrap();
    assert!(matches!(ended, Either::Right(_)), "told at {:?}", world.now());
}

#[test]
fn the_work_is_told_of_another_owner() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::NotOwner]);
    handle.keep_alive(LONG);
    world.run(handle.low());
    assert_eq!(world.now(), at(400));
}

#[test]
fn low_validity_is_an_option() {
    let world = World::default();
    let mut options = Options::new(ms(1200));
    options.low_validity = Some(ms(700));
    let lock = Lock::new(Fake::new(&world), options).unwrap();
    let handle = world.run(lock.try_acquire(&key())).unwrap();
    world.run(handle.low());
    assert_eq!(world.now(), at(1186 - 700));
    let too_short = world.run(lock.request(&key()).ttl(ms(600)).try_acquire()).unwrap_err();
    let refused = OptionsError::LowValidity { asked: ms(700), most: ms(592) };
    assert_eq!(too_short, TryAcquireError::Ttl(refused));
}

#[test]
fn low_validity_is_a_sixth_of_the_ttl_in_force() {
    let (world, _, handle) = held();
    let low = handle.low();
    let renewal = async { handle.renew_for(ms(6000)).await.unwrap() };
    world.run(join(low, renewal));
    assert_eq!(world.now(), at(6000 - 62 - 1000));
}

#[test]
fn a_failed_renewal_is_tried_again_while_validity_is_left() {
    let (world, fake, handle) = held();
    fake.on_renew([unreachable(), unreachable()]);
    world.run(handle.while_held(LONG, world.sleep_until(at(700)))).unwrap();
    assert_eq!(fake.calls("renew").len(), 3);
    assert_eq!(handle.valid_until(), at(500 + 1186));
}

#[test]
fn another_owner_ends_the_work_at_once() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::NotOwner]);
    let lost = world.run(handle.while_held(LONG, pending::<()>())).unwrap_err();
    assert_eq!(lost, LostError::NotOwner);
    assert_eq!(world.now(), at(400));
    assert_eq!(handle.remaining(), ms(0));
}

#[test]
fn the_cap_ends_the_work_of_a_valid_lease() {
    let (world, fake, handle) = held();
    let lost = world.run(handle.while_held(Cap(ms(2500)), pending::<()>())).unwrap_err();
    assert_eq!(lost, LostError::Capped);
    assert_eq!(world.now(), at(2500));
    assert!(handle.is_valid());
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    assert_eq!(fake.calls("renew").len(), 6);
}

#[test]
fn work_is_not_polled_after_a_pause_past_the_validity() {
    let (world, _, handle) = held();
    let polls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&polls);
    let pauser = world.clone();
    let work = poll_fn(move |cx| {
        // The process pauses inside the work, for longer than the lease; the work can run again at once.
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            pauser.pause(ms(5000));
            cx.waker().wake_by_ref();
        }
        Poll::<()>::Pending
    });
    assert_eq!(world.run(handle.while_held(LONG, work)).unwrap_err(), LostError::Expired);
    assert_eq!(polls.load(Ordering::SeqCst), 1);
}

#[test]
fn renewed_validity_counts_from_before_the_request() {
    let (world, fake, handle) = held();
    world.pass(ms(100));
    fake.on_renew([Order::After(ms(250))]);
    world.run(handle.renew()).unwrap();
    assert_eq!(world.now(), at(350));
    assert_eq!(handle.valid_until(), at(100 + 1186));
}

#[test]
fn a_renewal_that_waited_for_another_is_given_its_validity() {
    let (world, fake, handle) = held();
    world.pass(ms(1000));
    // The second is answered after the end of the validity that the lease had when both began.
    fake.on_renew([Order::After(ms(100)), Order::After(ms(150))]);
    let (first, second) = world.run(join(handle.renew(), handle.renew()));
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(world.now(), at(1250));
    assert_eq!(handle.valid_until(), at(1100 + 1186));
}

#[test]
fn an_expired_lease_stays_lost() {
    let (world, fake, handle) = held();
    world.pause(ms(1186));
    assert_eq!(world.run(handle.renew()).unwrap_err(), RenewError::Lost(LostError::Expired));
    assert!(fake.calls("renew").is_empty(), "refused without a request");
    assert!(!handle.is_valid());
}

#[test]
fn an_answer_after_the_validity_does_not_revive_the_lease() {
    let (world, fake, handle) = held();
    world.pass(ms(1100));
    fake.on_renew([Order::After(ms(200))]);
    assert_eq!(world.run(handle.renew()).unwrap_err(), RenewError::Lost(LostError::Expired));
    assert_eq!(world.now(), at(1186), "the loss is declared at the end of the validity");
}

#[test]
fn lost_completes_at_the_end_of_renewed_validity() {
    let (world, _, handle) = held();
    let lost = handle.lost();
    world.pass(ms(1000));
    world.run(handle.renew()).unwrap();
    world.run(lost);
    assert_eq!(world.now(), at(1000 + 1186));
}

#[test]
fn lost_completes_when_a_renewal_finds_another_owner() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::NotOwner]);
    handle.keep_alive(LONG);
    world.run(handle.lost());
    assert_eq!(world.now(), at(400));
}

#[test]
fn keep_alive_renews_until_the_release() {
    let (world, fake, handle) = held();
    handle.keep_alive(LONG);
    world.pass(ms(3000));
    assert!(handle.is_valid());
    assert_eq!(fake.calls("renew").len(), 7);
    assert_eq!(world.run(handle.release()).unwrap(), Released::Done);
    world.pass(ms(5000));
    assert_eq!(fake.calls("renew").len(), 7);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn keep_alive_ends_when_the_handle_is_dropped() {
    let (world, fake, handle) = held();
    handle.keep_alive(LONG);
    drop(handle);
    world.pass(ms(5000));
    assert!(fake.calls("renew").is_empty());
    assert_eq!(fake.calls("release").len(), 1);
    assert_eq!(world.tasks(), 0);
}

#[test]
fn keep_alive_stops_renewing_at_its_cap() {
    let (world, fake, handle) = held();
    handle.keep_alive(Cap(ms(1000)));
    world.run(handle.lost());
    assert_eq!(fake.calls("renew").len(), 2);
    assert_eq!(world.now(), at(800 + 1186));
}

#[test]
fn a_second_keep_alive_replaces_the_first() {
    let (world, fake, handle) = held();
    handle.keep_alive(Cap(ms(500)));
    handle.keep_alive(LONG);
    world.pass(ms(2900));
    assert!(handle.is_valid());
    assert_eq!(fake.calls("renew").len(), 7);
}

/// B09: the renewal goes on after the release.
#[test]
fn a_release_stops_the_renewal_in_progress() {
    let (world, fake, handle) = held();
    fake.on_renew([Order::After(ms(290))]);
    handle.keep_alive(LONG);
    world.pass(ms(450));
    assert_eq!(fake.calls("renew").len(), 1, "the renewal is in progress");
    world.run(handle.release()).unwrap();
    assert_eq!(world.now(), at(450), "the release does not wait for its answer");
    world.pass(ms(5000));
    assert_eq!(fake.calls("renew").len(), 1);
}
