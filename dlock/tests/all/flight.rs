//! Single-flight: one caller computes, the others wait for its result or its failure.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use crate::memory::Memory;
use crate::results::InMemory;
use crate::support::{World, key, ms};
use dlock::flight::{Claimed, Flight, FlightError, FlightResult, Fresh, Results, SingleFlight, Stored};
use dlock::{AcquireError, Cap, FencingToken, Instant, Lock, LockKey, Options, Owner, Runtime};
use futures_util::future::join3;

type Flights = SingleFlight<Memory<World>, InMemory>;

/// A process with its own lock client, and the store of results that all share.
struct Setting {
    world: World,
    server: Memory<World>,
    results: InMemory,
}

impl Setting {
    fn new() -> Self {
        let world = World::default();
        Self { server: Memory::new(world.clone()), results: InMemory::default(), world }
    }

    fn lock(&self) -> Lock<Memory<World>> {
        Lock::new(self.server.clone(), Options::new(ms(1200))).unwrap()
    }

    fn flight(&self) -> Flights {
        SingleFlight::new(self.lock(), self.results.clone(), Cap(ms(3_600_000))).unwrap()
    }

    /// Computes `value` in `millis`, and counts the computation.
    async fn compute(&self, count: &Cell<u32>, millis: u64, value: &str) -> Result<Vec<u8>, String> {
        count.set(count.get() + 1);
        self.world.sleep_until(self.world.now() + ms(millis)).await;
        match value.strip_prefix("failure: ") {
            Some(failure) => Err(failure.to_owned()),
            None => Ok(value.as_bytes().to_vec()),
        }
    }

    async fn run(
        &self,
        flight: &Flights,
        fresh: Fresh,
        count: &Cell<u32>,
        value: &str,
    ) -> Result<Flight, FlightError<Infallible>> {
        let deadline = self.world.now() + ms(30_000);
        flight.run(&key(), fresh, deadline, |_| self.compute(count, 500, value)).await
    }
}

/// A store whose client pauses for longer than a lease between each result that is kept and the answer.
struct Pausing {
    world: World,
    results: InMemory,
}

impl Results for Pausing {
    type Error = Infallible;

    async fn get(&self, key: &LockKey, deadline: Instant) -> Result<Option<FlightResult>, Infallible> {
        self.results.get(key, deadline).await
    }

    async fn claim(
        &self,
        key: &LockKey,
        token: FencingToken,
        owner: &Owner,
        deadline: Instant,
    ) -> Result<Claimed, Infallible> {
        self.results.claim(key, token, owner, deadline).await
    }

    async fn put(
        &self,
        key: &LockKey,
        result: &FlightResult,
        owner: &Owner,
        deadline: Instant,
    ) -> Result<Stored, Infallible> {
        let stored = self.results.put(key, result, owner, deadline).await;
        self.world.pause(ms(1500));
        self.world.sleep_until(self.world.now()).await;
        stored
    }
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

#[test]
fn callers_at_once_share_one_computation() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let flights = [(); 3].map(|()| setting.flight());
    let run = |number: usize| setting.run(&flights[number], Fresh::SinceCall, &count, "value");
    let (one, two, three) = setting.world.run(join3(run(0), run(1), run(2)));
    let all = [one.unwrap(), two.unwrap(), three.unwrap()];
    assert_eq!(count.get(), 1);
    assert_eq!(all.iter().filter(|flight| !flight.is_shared).count(), 1);
    assert!(all.iter().all(|flight| flight.result == all[0].result));
    assert_eq!(all[0].result, FlightResult { token: token(1), value: Ok(b"value".to_vec()) });
}

#[test]
fn a_failure_is_shared_with_those_who_wait_and_no_later_caller() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let flights = [(); 3].map(|()| setting.flight());
    let run = |number: usize| setting.run(&flights[number], Fresh::Any, &count, "failure: full");
    let (one, two, three) = setting.world.run(join3(run(0), run(1), run(2)));
    for flight in [one, two, three] {
        assert_eq!(flight.unwrap().result.value, Err("full".to_owned()));
    }
    assert_eq!(count.get(), 1);
    let later = setting.world.run(setting.run(&flights[0], Fresh::Any, &count, "value")).unwrap();
    assert_eq!((count.get(), later.result.value), (2, Ok(b"value".to_vec())));
}

#[test]
fn each_rule_of_freshness_accepts_its_own_values() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let flight = setting.flight();
    let run = |fresh| setting.world.run(setting.run(&flight, fresh, &count, "value")).unwrap();
    assert_eq!(run(Fresh::Any).result.token, token(1));
    assert_eq!(run(Fresh::Any).result.token, token(1));
    assert_eq!(run(Fresh::Above(token(1))).result.token, token(2));
    assert_eq!(run(Fresh::Above(token(1))).result.token, token(2));
    assert_eq!(run(Fresh::SinceCall).result.token, token(3));
    assert_eq!(count.get(), 3);
}

#[test]
fn a_computation_that_is_dropped_is_replaced() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let (one, two) = (setting.flight(), setting.flight());
    let mut first = Box::pin(setting.run(&one, Fresh::Any, &count, "value"));
    assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(count.get(), 1);
    drop(first);
    let second = setting.world.run(setting.run(&two, Fresh::Any, &count, "other")).unwrap();
    assert!(!second.is_shared && second.result.token == token(2));
}

#[test]
fn a_result_stored_while_the_lock_was_requested_is_found_under_it() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let (lock, flight) = (setting.lock(), setting.flight());
    let held = setting.world.run(lock.try_acquire(&key())).unwrap();
    let mut waiting = pin!(setting.run(&flight, Fresh::Any, &count, "value"));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let result = FlightResult { token: held.fence(), value: Ok(b"early".to_vec()) };
    let deadline = setting.world.now();
    let stored = setting.world.run(setting.results.put(&key(), &result, held.owner(), deadline));
    assert_eq!(stored, Ok(Stored::Accepted));
    setting.world.run(held.release()).unwrap();
    let flight = setting.world.run(waiting).unwrap();
    assert_eq!((flight.is_shared, flight.result, count.get()), (true, result, 0));
}

#[test]
fn the_late_result_of_a_paused_process_is_refused() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let (lock, flight) = (setting.lock(), setting.flight());
    let paused = setting.world.run(lock.try_acquire(&key())).unwrap();
    setting.world.pause(ms(1500));
    let next = setting.world.run(setting.run(&flight, Fresh::Any, &count, "next")).unwrap();
    assert_eq!(next.result.token, token(2));
    let late = FlightResult { token: paused.fence(), value: Ok(b"late".to_vec()) };
    let deadline = setting.world.now();
    let stored = setting.world.run(setting.results.put(&key(), &late, paused.owner(), deadline));
    assert_eq!(stored, Ok(Stored::Stale));
    let kept = setting.world.run(setting.results.get(&key(), deadline)).unwrap().unwrap();
    assert_eq!(kept, next.result);
}

#[test]
fn a_process_that_loses_its_lease_returns_the_result_of_its_successor() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let (one, two) = (setting.flight(), setting.flight());
    let mut first = Box::pin(setting.run(&one, Fresh::Any, &count, "late"));
    assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // The first process pauses: it is not polled while its lease ends and another one computes.
    setting.world.pause(ms(1500));
    let next = setting.world.run(setting.run(&two, Fresh::Any, &count, "next")).unwrap();
    let first = setting.world.run(first).unwrap();
    assert!(first.is_shared && !next.is_shared && count.get() == 2);
    assert_eq!(first.result, next.result);
}

#[test]
fn an_own_result_is_not_shared_after_the_lease_ended() {
    let setting = Setting::new();
    let results = Pausing { world: setting.world.clone(), results: setting.results.clone() };
    let flight = SingleFlight::new(setting.lock(), results, Cap(ms(3_600_000))).unwrap();
    let (key, deadline) = (key(), setting.world.now() + ms(30_000));
    let compute = |_| async { Ok::<_, String>(b"value".to_vec()) };
    let flown = setting.world.run(flight.run(&key, Fresh::Any, deadline, compute)).unwrap();
    assert_eq!(flown.result, FlightResult { token: token(1), value: Ok(b"value".to_vec()) });
    assert!(!flown.is_shared, "this call has computed it");
}

#[test]
#[cfg(feature = "redis")]
fn a_lock_with_several_permits_is_refused() {
    use dlock::redis::{Redis, RedisOptions};

    let redis = Redis::new(World::default(), "127.0.0.1:6379", RedisOptions::default()).unwrap();
    let mut options = Options::new(ms(1200));
    options.permits = 2;
    let lock = Lock::new(redis, options).unwrap();
    let error = SingleFlight::new(lock, InMemory::default(), Cap(ms(60_000))).err().unwrap();
    assert_eq!(error, dlock::OptionsError::Flights { permits: 2 });
}

#[test]
fn a_caller_gives_up_at_its_deadline() {
    let (setting, count) = (Setting::new(), Cell::new(0));
    let (lock, flight) = (setting.lock(), setting.flight());
    let held = setting.world.run(lock.try_acquire(&key())).unwrap();
    held.keep_alive(Cap(ms(60_000)));
    let deadline = setting.world.now() + ms(3000);
    let key = key();
    let run = flight.run(&key, Fresh::Any, deadline, |_| setting.compute(&count, 1, "value"));
    let error = setting.world.run(run).unwrap_err();
    assert!(matches!(error, FlightError::Acquire(AcquireError::Taken { .. })), "{error}");
    assert_eq!((setting.world.now(), count.get()), (deadline, 0));
}
