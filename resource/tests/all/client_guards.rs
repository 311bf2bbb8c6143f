//! The client of a guarded service: its token, and its answers to refusals.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::world::{Link, World, run};
use dlock::{FencingToken, Instant, Runtime};
use resource::bearer::BearerTokens;
use resource::client::{Client, ClientError, Failure, PutAnswer, ReadAnswer, Retry};
use resource::fence::{Guard, Refusal};
use resource::http::{App, Config, Guards, RateLimit};
use resource::store::{MemoryStore, Write};
use resource::{MaxJump, OwnerToken, ResourceKey};
use tokio::io::DuplexStream;

const SECRET: &str = "9f86d081884c7d659a2feaa0c55ad015";

fn key() -> ResourceKey {
    ResourceKey::new("orders:42").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn write(number: u64) -> Write {
    let owner = Some(OwnerToken::new("a:1").unwrap());
    Write { guard: Guard::token(token(number)), owner, body: "x".into() }
}

fn client(world: &World) -> Client<World> {
    Client::new(world.clone(), "resource:80")
}

#[test]
fn a_refused_jump_is_an_answer_of_its_own() {
    let store = MemoryStore::new().with_max_jump(MaxJump::new(10, 5));
    run(&App::new(Arc::new(store), Config::default()), &[], async |world| {
        let (client, deadline) = (client(&world), World::at(9));
        let first = client.put(&key(), &write(11), deadline).await;
        let refusal = Refusal::Jump { seen: None, got: token(11), max: 10 };
        assert_eq!(first, Ok(PutAnswer::Refused(refusal)));
        client.put(&key(), &write(10), deadline).await.unwrap();
        let again = client.put_with_retry(&key(), &write(16), deadline, Retry::default()).await;
        let refusal = Refusal::Jump { seen: Some(token(10)), got: token(16), max: 15 };
        assert_eq!(again, Ok(PutAnswer::Refused(refusal)));
        let claim = client.fenced_read(&key(), token(16), None, deadline).await;
        assert_eq!(claim, Ok(ReadAnswer::Jump { seen: Some(token(10)), got: token(16), max: 15 }));
    });
}

#[test]
fn a_client_with_the_token_is_served() {
    let bearer = Some(BearerTokens::parse(SECRET).unwrap());
    let app = App::new(Arc::new(MemoryStore::new()), Config::default());
    run(&app.guarded(Guards { bearer, ..Guards::default() }), &[], async |world| {
        let deadline = World::at(9);
        let unsigned = client(&world).put_with_retry(&key(), &write(34), deadline, Retry::default()).await;
        let error = unsigned.expect_err("it has no token");
        assert!(matches!(error, ClientError::Refused { status: 401, .. }), "{error:?}");
        let signed = client(&world).with_bearer(SECRET.parse().unwrap());
        assert_eq!(signed.put(&key(), &write(34), deadline).await, Ok(PutAnswer::Accepted { version: 1 }));
        let wrong = client(&world).with_bearer(format!("{SECRET}0").parse().unwrap());
        let error = wrong.read(&key(), deadline).await.expect_err("it has another token");
        let shown = format!("{signed:?} {wrong:?} {error} {error:?}");
        assert!(!shown.contains("9f86"), "{shown}");
    });
}

/// The answer to the write is lost. Until it is repeated, the service is replaced by one with other tokens.
#[test]
fn a_lost_answer_stays_unknown_though_the_repetition_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let open = App::new(store.clone(), Config::default());
    let bearer = Some(BearerTokens::parse(SECRET).unwrap());
    let guarded = App::new(store, Config::default()).guarded(Guards { bearer, ..Guards::default() });
    run(&open, &[Link::LosesReplies], async |world| {
        let later = world.clone();
        world.spawn(async move {
            later.sleep_until(World::at(0) + Duration::from_millis(500)).await;
            later.deploy(&guarded);
        });
        let answer = client(&world).put_with_retry(&key(), &write(34), World::at(9), Retry::default()).await;
        let Err(ClientError::Unknown(Failure::Service(why))) = answer else { panic!("{answer:?}") };
        assert!(why.starts_with("the service then refused a repetition (401): "), "{why}");
    });
}

/// The clock of a world that is made after the service.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<Option<World>>>);

impl Runtime for Later {
    type Stream = DuplexStream;

    fn now(&self) -> Instant {
        self.0.lock().unwrap().as_ref().map_or(Instant::from_nanos(0), Runtime::now)
    }

    async fn sleep_until(&self, _: Instant) {
        std::future::pending().await
    }

    async fn connect(&self, _: &str) -> std::io::Result<DuplexStream> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {}

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

#[test]
fn a_retry_waits_as_long_as_the_rate_demands() {
    let clock = Later::default();
    let rate = Some(RateLimit::new(clock.clone(), NonZeroU32::new(1).unwrap()));
    let app = App::new(Arc::new(MemoryStore::new()), Config::default());
    run(&app.guarded(Guards { rate, ..Guards::default() }), &[], async |world| {
        *clock.0.lock().unwrap() = Some(world.clone());
        let (client, deadline) = (client(&world), World::at(9));
        client.read(&key(), deadline).await.unwrap();
        let limited = client.put(&key(), &write(34), deadline).await;
        let wait = Duration::from_secs(1);
        assert_eq!(limited, Err(ClientError::NotSent(Failure::RateLimited(wait))));
        let answer = client.put_with_retry(&key(), &write(34), deadline, Retry::default()).await;
        assert_eq!(answer, Ok(PutAnswer::Accepted { version: 1 }));
        assert_eq!(world.now(), World::at(1), "one pause, of the length that the service named");
        let late = client.put_with_retry(&key(), &write(35), World::at(2), Retry::default()).await;
        assert_eq!(late, Err(ClientError::NotSent(Failure::RateLimited(wait))), "it was never applied");
    });
}
