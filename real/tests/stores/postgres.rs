//! The PostgreSQL store against the store in memory, against itself, and after a crash.

use std::sync::Arc;

use bytes::Bytes;
use dlock::FencingToken;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use real::servers::{Postgres, Stage};
use real::store::{BlobFolder, GuardedBlobs, PostgresStore};
use resource::fence::{Beside, Fencing, Guard, Refusal, WriteOutcome, WriteSeq};
use resource::store::{MemoryStore, Read, ReadOutcome, Store, Write};
use resource::{OwnerToken, ResourceKey};
use tokio_postgres::NoTls;

fn key(name: &str) -> ResourceKey {
    ResourceKey::new(name).unwrap()
}

fn owner(name: &str) -> Option<OwnerToken> {
    Some(OwnerToken::new(name).unwrap())
}

fn write(token: u64, owner_name: &str, body: &str) -> Write {
    let token = FencingToken::new(token).unwrap();
    Write {
        guard: Guard::token(token),
        owner: owner(owner_name),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

async fn query(postgres: &Postgres, text: &str) -> Vec<tokio_postgres::Row> {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query(text, &[]).await.unwrap()
}

/// Draws steps for both stores, from so few keys, tokens, owners and bodies that all cases of the rule occur.
struct Draw(ChaCha8Rng);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn token(&mut self) -> FencingToken {
        // The largest two don't fit into a bigint.
        let number = [1, 2, 3, u64::MAX - 1, u64::MAX][self.below(5) as usize];
        FencingToken::new(number).unwrap()
    }

    fn owner(&mut self) -> Option<OwnerToken> {
        [None, owner("a:11111111"), owner("b:22222222")][self.below(3) as usize].clone()
    }

    fn beside(&mut self) -> Beside {
        let tokens: Vec<_> = (0..self.below(4)).map(|_| self.token()).collect();
        Beside::new(tokens).unwrap()
    }

    fn fencing(&mut self) -> Fencing {
        if self.below(8) == 0 { Fencing::Off } else { Fencing::On }
    }
}

#[tokio::test]
async fn the_store_decides_like_the_store_in_memory() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let (ours, model) = (PostgresStore::connect(&postgres.url()).await.unwrap(), MemoryStore::new());
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(1));
    let (mut accepted, mut repeated, mut refused) = (0, 0, 0);
    let (mut conditional, mut again, mut conflicts, mut fenced) = (0, 0, 0, 0);
    // Accepted writes of a permit below the highest token.
    let mut below = 0;
    // The last conditional write, which its writer may send again.
    let mut sent = None;
    for step in 0..900 {
        // New keys every 20 steps: an old key refuses nearly every write.
        let key = key(&format!("k{}", step / 20 * 2 + draw.below(2)));
        let fencing = draw.fencing();
        if draw.below(3) == 0 {
            let claim = (draw.below(2) == 0).then(|| draw.token());
            let read = Read { claim, owner: draw.owner() };
            let beside = draw.beside();
            let expected = model.read_beside(&key, &read, &beside, fencing).await.unwrap();
            let found = ours.read_beside(&key, &read, &beside, fencing).await.unwrap();
            assert_eq!(found, expected, "step {step}: {read:?} beside {beside}");
            continue;
        }
        let body = Bytes::from(format!("body {}", draw.below(2)));
        if draw.below(3) == 0 {
            let guard = Guard::Version { expected: draw.below(3) };
            let new = Write { guard, owner: draw.owner(), body };
            let (key, write) = match sent.take() {
                Some(lost) if draw.below(2) == 0 => lost,
                _ => (key, new),
            };
            sent = Some((key.clone(), write.clone()));
            let expected = model.write(&key, &write, fencing).await.unwrap();
            assert_eq!(ours.write(&key, &write, fencing).await.unwrap(), expected, "step {step}: {write:?}");
            match expected {
                WriteOutcome::Accepted(_) => conditional += 1,
                WriteOutcome::Repeated(_) => again += 1,
                WriteOutcome::Refused(Refusal::Conflict { .. }) => conflicts += 1,
                WriteOutcome::Refused(_) => fenced += 1,
            }
            continue;
        }
        let guard = Guard::Token { token: draw.token(), seq: WriteSeq::new(draw.below(3)) };
        let (write, beside) = (Write { guard, owner: draw.owner(), body }, draw.beside());
        let expected = model.write_beside(&key, &write, &beside, fencing).await.unwrap();
        let found = ours.write_beside(&key, &write, &beside, fencing).await.unwrap();
        assert_eq!(found, expected, "step {step}: {write:?} beside {beside}");
        match expected {
            WriteOutcome::Accepted(receipt) => {
                accepted += 1;
                let is_highest =
                    matches!(guard, Guard::Token { token, .. } if receipt.max_fence == Some(token));
                below += i64::from(fencing == Fencing::On && !is_highest);
            }
            WriteOutcome::Repeated(_) => repeated += 1,
            WriteOutcome::Refused(_) => refused += 1,
        }
    }
    let met = [accepted, repeated, refused, conditional, again, conflicts, fenced, below];
    assert!(met.iter().all(|count| *count > 0), "every case must come up: {met:?}");
    let logged: i64 = query(&postgres, "SELECT count(*) FROM audit_log").await[0].get(0);
    assert_eq!(logged, accepted + conditional, "each accepted write has a row, and nothing else has");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_race_accept_each_token_once() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    // Two services, each with its own connections: they share only the database.
    let url = postgres.url();
    let services = [0, 1].map(|_| PostgresStore::connect(&url));
    let services = futures_util::future::try_join_all(services).await.unwrap();
    let racers: Vec<_> = (0..120)
        .map(|n| {
            let store = services[n % 2].clone();
            let write = write(1 + (n as u64 / 6), &format!("w:{n:08}"), &n.to_string());
            tokio::spawn(async move { store.write(&key("hot"), &write, Fencing::On).await.unwrap() })
        })
        .collect();
    let outcomes = futures_util::future::try_join_all(racers).await.unwrap();
    let accepted = outcomes.iter().filter(|outcome| matches!(outcome, WriteOutcome::Accepted(_))).count();
    let log = query(&postgres, "SELECT fencing_token::text FROM audit_log ORDER BY id").await;
    let tokens: Vec<u64> = log.iter().map(|row| row.get::<_, &str>(0).parse().unwrap()).collect();
    assert_eq!(tokens.len(), accepted);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(tokens.last(), Some(&20), "the highest token is never refused");
}

#[tokio::test]
async fn an_accepted_token_outlives_a_crash_of_the_database() {
    let stage = Stage::new().unwrap();
    let mut postgres = Postgres::start(&stage).unwrap();
    let store = PostgresStore::connect(&postgres.url()).await.unwrap();
    let taken = store.write(&key("k"), &write(34, "b:1", "new"), Fencing::On).await.unwrap();
    assert!(matches!(taken, WriteOutcome::Accepted(_)));
    drop(store);
    postgres.restart().unwrap();
    // The second connect finds its tables.
    let store = PostgresStore::connect(&postgres.url()).await.unwrap();
    let late = store.write(&key("k"), &write(33, "a:1", "old"), Fencing::On).await.unwrap();
    assert!(matches!(late, WriteOutcome::Refused(_)), "{late:?}");
    let kept = store.read(&key("k"), &Read::default(), Fencing::On).await.unwrap();
    assert!(matches!(&kept, ReadOutcome::Read(snapshot) if snapshot.value == Some("new".into())), "{kept:?}");
}

#[tokio::test]
async fn permits_outlive_a_crash_of_the_database() {
    let stage = Stage::new().unwrap();
    let mut postgres = Postgres::start(&stage).unwrap();
    let store = PostgresStore::connect(&postgres.url()).await.unwrap();
    let beside = "31,33".parse::<Beside>().unwrap();
    let taken = store.write_beside(&key("k"), &write(34, "c:1", "c"), &beside, Fencing::On).await.unwrap();
    assert!(matches!(taken, WriteOutcome::Accepted(_)));
    let claim = Read { claim: FencingToken::new(33), owner: owner("b:1") };
    assert!(matches!(store.read(&key("k"), &claim, Fencing::On).await.unwrap(), ReadOutcome::Read(_)));
    drop(store);
    postgres.restart().unwrap();
    let store = PostgresStore::connect(&postgres.url()).await.unwrap();
    let mut outcomes = Vec::new();
    for (token, by) in [(32, "x:1"), (33, "x:1"), (33, "b:1"), (31, "a:1")] {
        let outcome = store.write(&key("k"), &write(token, by, by), Fencing::On).await.unwrap();
        outcomes.push(matches!(outcome, WriteOutcome::Accepted(_)));
    }
    assert_eq!(outcomes, [false, false, true, true], "32 had ended, and 33 is another owner's");
    // A mutex has no permits.
    let taken = store.write(&key("k"), &write(35, "d:1", "d"), Fencing::On).await.unwrap();
    assert!(matches!(taken, WriteOutcome::Accepted(_)));
    let late = store.write(&key("k"), &write(31, "a:1", "late"), Fencing::On).await.unwrap();
    assert!(matches!(late, WriteOutcome::Refused(_)), "{late:?}");
    let columns = query(&postgres, "SELECT permits IS NULL FROM resource_locks").await;
    assert!(columns[0].get::<_, bool>(0), "the column of a mutex is null");
}

#[tokio::test]
async fn a_stale_writer_never_touches_the_blobs() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let store = Arc::new(PostgresStore::connect(&postgres.url()).await.unwrap());
    let folder = stage.directory().join("blobs");
    let blobs = GuardedBlobs::new(store, BlobFolder::open(&folder).unwrap());
    let key = key("report:7");
    assert_eq!(blobs.get(&key).await.unwrap(), None);
    let newer = write(34, "b:1", "newer");
    assert!(matches!(blobs.put(&key, &newer).await.unwrap(), WriteOutcome::Accepted(_)));
    assert!(matches!(blobs.put(&key, &write(33, "a:1", "older")).await.unwrap(), WriteOutcome::Refused(_)));
    let files: Vec<_> = std::fs::read_dir(folder.join("report:7")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    // As if the writer had died between the row and the upload: the retry completes it.
    std::fs::remove_file(files[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(blobs.get(&key).await.unwrap(), None);
    assert!(matches!(blobs.put(&key, &newer).await.unwrap(), WriteOutcome::Repeated(_)));
    assert_eq!(blobs.get(&key).await.unwrap(), Some("newer".into()));
}

#[tokio::test]
async fn the_error_names_an_unreachable_database() {
    let error = PostgresStore::connect("postgresql://postgres@127.0.0.1:1/postgres").await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "no connection to PostgreSQL: error connecting to server: Connection refused (os error 111); \
         check that it is running and admits this user"
    );
    let error = PostgresStore::connect("not a url").await.err().unwrap();
    assert!(error.to_string().contains("give postgresql://"), "{error}");
}
