//! The update without a lock: it reads again after each conflict, backs off, and at last gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::world::{Link, World, run};
use bytes::Bytes;
use dlock::FencingToken;
use resource::ResourceKey;
use resource::client::{Client, ClientError, ReadAnswer};
use resource::fence::Guard;
use resource::http::{App, Config};
use resource::store::{MemoryStore, Snapshot, Write};
use resource::update::{Update, UpdateError, Updated, Updater};
use resource::worker::{Pauses, Step};

fn app() -> App {
    App::new(Arc::new(MemoryStore::new()), Config::default())
}

fn update() -> Update {
    Update { attempts: 3, ..Update::new(ResourceKey::new("orders:42").unwrap(), Duration::from_millis(5)) }
}

/// Writes first, between the updater's read and its write, in the first `rivals` attempts.
#[derive(Clone)]
struct Rival {
    world: World,
    rivals: Arc<AtomicU64>,
}

impl Pauses for Rival {
    async fn at(&self, step: Step) {
        let left = self.rivals.load(Ordering::Relaxed);
        if step != Step::Worked || left == 0 {
            return;
        }
        self.rivals.store(left - 1, Ordering::Relaxed);
        let client = Client::new(self.world.clone(), "resource:80");
        let key = update().key;
        let ReadAnswer::Read(seen) = client.read(&key, World::at(9)).await.unwrap() else { panic!() };
        let first =
            Write { guard: Guard::Version { expected: seen.version }, owner: None, body: "rival".into() };
        client.put(&key, &first, World::at(9)).await.unwrap();
    }
}

fn updater(world: &World, rivals: u64) -> Updater<World, Rival> {
    let client = Client::new(world.clone(), "resource:80");
    let rival = Rival { world: world.clone(), rivals: Arc::new(AtomicU64::new(rivals)) };
    Updater::new(world.clone(), client, rival, "a")
}

/// Returns the value with one more word.
fn append(seen: &Snapshot) -> Bytes {
    let before = seen.value.clone().unwrap_or_default();
    Bytes::from([&before[..], b" mine"].concat())
}

async fn value(world: &World) -> Bytes {
    let client = Client::new(world.clone(), "resource:80");
    match client.read(&update().key, World::at(9)).await {
        Ok(ReadAnswer::Read(snapshot)) => snapshot.value.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_attempt_reads_the_latest_value() {
    run(&app(), &[], async |world| {
        let updated = updater(&world, 2).update(&update(), append).await;
        assert_eq!(updated, Ok(Updated { version: 3, attempts: 3 }));
        assert_eq!(value(&world).await, "rival mine");
    });
}

#[test]
fn it_gives_up_after_the_maximum_of_attempts() {
    run(&app(), &[], async |world| {
        let given_up = updater(&world, 3).update(&update(), append).await;
        assert_eq!(given_up, Err(UpdateError::Contended { attempts: 3, current: 3 }));
        assert_eq!(value(&world).await, "rival", "its value is not stored");
    });
}

/// Between the write whose answer is lost and its repetition, a rival builds on it. To begin anew would make
/// the update twice.
#[test]
fn an_update_that_another_followed_before_its_repetition_is_unknown() {
    let links = [Link::ClosesAfterReply, Link::LosesReplies];
    run(&app(), &links, async |world| {
        let rival = world.clone();
        dlock::Runtime::spawn(&world, async move {
            dlock::Runtime::sleep_until(&rival, World::at(0) + Duration::from_millis(500)).await;
            let client = Client::new(rival.clone(), "resource:80");
            let guard = Guard::Version { expected: 1 };
            let next = Write { guard, owner: None, body: " mine, rival".into() };
            client.put(&update().key, &next, World::at(9)).await.unwrap();
        });
        let answer = updater(&world, 0).update(&update(), append).await;
        let Err(UpdateError::Unanswered(ClientError::Unknown(why))) = answer else { panic!("{answer:?}") };
        assert_eq!(why.to_string(), "its answer was lost, and its repetition refused as conflict");
        assert_eq!(value(&world).await, " mine, rival");
    });
}

#[test]
fn it_waits_longer_after_each_conflict() {
    run(&app(), &[], async |world| {
        let one_second = dlock::Backoff { base: Duration::from_secs(1), max: Duration::from_secs(60) };
        let update = Update { backoff: one_second, work: Duration::ZERO, ..update() };
        let began = dlock::Runtime::now(&world);
        updater(&world, 2).update(&update, append).await.unwrap();
        let took = dlock::Runtime::now(&world).saturating_since(began);
        // Each wait is at least half of its maximum: 0.5 s, then 1 s.
        assert!((Duration::from_millis(1500)..=Duration::from_secs(3)).contains(&took), "{took:?}");
    });
}

#[test]
fn an_update_of_a_fenced_key_is_refused() {
    run(&app(), &[], async |world| {
        let client = Client::new(world.clone(), "resource:80");
        let token = FencingToken::new(34).unwrap();
        let held = Write { guard: Guard::token(token), owner: None, body: "held".into() };
        client.put(&update().key, &held, World::at(9)).await.unwrap();
        let refused = updater(&world, 0).update(&update(), append).await;
        assert_eq!(refused, Err(UpdateError::Fenced { seen: token }));
    });
}
