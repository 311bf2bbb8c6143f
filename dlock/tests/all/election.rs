//! Elections: terms grow, a leader that can't renew stops before the next begins, and observers see each term
//! once.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::memory::Memory;
use crate::support::backend::{Fake, InSession, Order};
use crate::support::{World, key, ms};
use dlock::election::Election;
use dlock::{AcquireError, BackendError, Cap, Instant, Lock, LostError, Options, Released, Runtime};

const LONG: Cap = Cap(std::time::Duration::from_secs(3600));

/// Returns a world, and the elections of two processes on one server in memory, whose leases live for 1.2 s.
fn in_memory() -> (World, [Election<Memory<World>>; 2]) {
    let world = World::default();
    let memory = Memory::new(world.clone());
    let election = |name: &str| {
        let mut options = Options::new(ms(1200));
        options.instance = Some(name.into());
        Election::new(Lock::new(memory.clone(), options).unwrap(), key(), LONG).unwrap()
    };
    (world, ["a", "b"].map(election))
}

/// Returns a world and an election on a server that obeys a test's orders; terms are capped by `cap`.
fn faked(cap: Cap) -> (World, Fake, Election<Fake>) {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(1200))).unwrap();
    (world, fake, Election::new(lock, key(), cap).unwrap())
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(0) + ms(millis)
}

#[test]
fn the_next_leader_has_a_greater_term() {
    let (world, [a, b]) = in_memory();
    let first = world.run(a.campaign(world.now() + ms(100))).unwrap();
    assert_eq!(first.term().as_u64(), 1);
    let taken = world.run(b.campaign(world.now() + ms(100))).unwrap_err();
    assert!(matches!(taken, AcquireError::Taken { .. }), "{taken}");
    assert_eq!(world.run(first.resign()), Ok(Released::Done));
    let second = world.run(b.campaign(world.now() + ms(100))).unwrap();
    assert_eq!(second.term().as_u64(), 2);
}

#[test]
fn a_leader_leads_for_longer_than_its_lease() {
    let (world, [a, _]) = in_memory();
    let leadership = world.run(a.campaign(world.now() + ms(100))).unwrap();
    assert_eq!(world.run(leadership.lead(async { world.sleep_until(at(5000)).await })), Ok(()));
    assert!(leadership.lease().is_valid());
}

#[test]
fn a_leader_that_can_not_renew_stops_when_its_validity_ends() {
    let (world, fake, election) = faked(LONG);
    let leadership = world.run(election.campaign(world.now() + ms(100))).unwrap();
    fake.on_renew(std::iter::repeat_n(Order::LoseAnswer, 99));
    let guard = Arc::new(());
    let inside = Arc::clone(&guard);
    let lost = world.run(leadership.lead(async move {
        let _inside = inside;
        pending::<()>().await;
    }));
    assert_eq!((lost, world.now()), (Err(LostError::Expired), at(1186)), "the lease ends at 1200 ms");
    assert_eq!(Arc::strong_count(&guard), 1, "the work was dropped");
    world.run(leadership.lost());
}

#[test]
fn a_leader_whose_lease_is_anothers_stops_at_once() {
    let (world, fake, election) = faked(LONG);
    let leadership = world.run(election.campaign(world.now() + ms(100))).unwrap();
    fake.on_renew([Order::NotOwner]);
    assert_eq!(world.run(leadership.lead(pending::<()>())), Err(LostError::NotOwner));
    assert_eq!(world.now(), at(400));
}

#[test]
fn a_term_ends_after_its_cap() {
    let (world, fake, election) = faked(Cap(ms(1000)));
    let leadership = world.run(election.campaign(world.now() + ms(100))).unwrap();
    assert_eq!(world.run(leadership.lead(pending::<()>())), Err(LostError::Expired));
    assert_eq!(fake.calls("renew").len(), 2, "at 400 ms and at 800 ms");
    assert_eq!(world.now(), at(800 + 1186));
}

#[test]
fn a_term_ends_after_its_cap_though_the_session_lives() {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(InSession(fake.clone()), Options::new(ms(1200))).unwrap();
    let election = Election::new(lock, key(), Cap(ms(1000))).unwrap();
    let leadership = world.run(election.campaign(world.now() + ms(100))).unwrap();
    world.pass(ms(1900));
    assert_eq!(fake.calls("release").len(), 0, "the lease is valid until 1986 ms");
    world.pass(ms(200));
    assert_eq!(fake.calls("release").len(), 1, "nobody has resigned");
    assert!(!leadership.lease().is_valid());
}

#[test]
fn work_after_a_pause_is_not_polled_again() {
    let (world, [a, _]) = in_memory();
    let leadership = world.run(a.campaign(world.now() + ms(100))).unwrap();
    let work = async {
        // The clock advances while no timer fires, as in a paused process.
        world.pause(ms(5000));
        world.sleep_until(world.now()).await;
        panic!("the leader acts after its pause");
    };
    let lost: Result<(), _> = world.run(leadership.lead(work));
    assert_eq!(lost, Err(LostError::Expired));
}

#[test]
fn an_observer_sees_each_term_once() {
    let (world, [a, b]) = in_memory();
    let mut observer = b.observe();
    let first = world.run(a.campaign(world.now() + ms(100))).unwrap();
    let seen = world.run(observer.next()).unwrap();
    assert_eq!(seen.term, first.term());
    assert_eq!(seen.leader, first.lease().owner().prefix());
    assert!(seen.leader.starts_with("a:") && seen.leader.len() == 10, "8 of 32 digits: {}", seen.leader);
    {
        let mut next = pin!(observer.next());
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        world.pass(ms(3000));
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "no news");
    }
    world.run(first.resign()).unwrap();
    let second = world.run(b.campaign(world.now() + ms(100))).unwrap();
    assert_eq!(world.run(observer.next()).unwrap().term, second.term());
}

#[test]
fn a_backend_that_does_not_tell_its_holders_says_so() {
    let (world, _, election) = faked(LONG);
    let error = world.run(election.observe().next()).unwrap_err();
    assert_eq!(error, BackendError::NotTold { system: "fake" });
    assert!(!error.is_passing());
}

#[test]
#[cfg(feature = "redis")]
fn a_semaphore_elects_nobody() {
    use dlock::redis::{Redis, RedisOptions};

    let redis = Redis::new(World::default(), "127.0.0.1:6379", RedisOptions::default()).unwrap();
    let mut options = Options::new(ms(1200));
    options.permits = 2;
    let error = Election::new(Lock::new(redis, options).unwrap(), key(), LONG).unwrap_err();
    assert_eq!(error, dlock::OptionsError::Leaders { permits: 2 });
}
