//! The check of the fence in a user's transaction, on a live PostgreSQL, with both clients.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "writers race as tasks of their own")]

use dlock::FencingToken;
use fence::{
    BodyDigest, Entry, Fence, Fencing, Guard, OwnerToken, Receipt, Refusal, ResourceKey, Stop, WriteOutcome,
    WriteSeq, check, migrate,
};
use futures_util::future::try_join_all;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use real::servers::{Postgres, Stage};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio_postgres::{Client, NoTls};

const ORDERS: &str = "CREATE TABLE orders (id bigint PRIMARY KEY, token bigint NOT NULL)";
const WRITE: &str =
    "INSERT INTO orders VALUES (42, $1) ON CONFLICT (id) DO UPDATE SET token = excluded.token";

fn order() -> ResourceKey {
    ResourceKey::new("orders:42").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn owner(name: &str) -> OwnerToken {
    OwnerToken::new(name).unwrap()
}

async fn connect(postgres: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Starts a server with the tables of the check and one of the user's.
async fn scene() -> (Stage, Postgres, Client) {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let client = connect(&postgres).await;
    migrate(&client).await.unwrap();
    client.batch_execute(ORDERS).await.unwrap();
    (stage, postgres, client)
}

/// Writes the order with `entry`, as a user does with tokio-postgres.
async fn write(
    client: &mut Client,
    key: &ResourceKey,
    entry: Entry,
) -> Result<Receipt, Stop<tokio_postgres::Error>> {
    let number = entry.token().as_u64() as i64;
    let mut transaction = client.transaction().await?;
    let receipt = check(&mut transaction, key, entry).await?;
    transaction.execute(WRITE, &[&number]).await?;
    transaction.commit().await?;
    Ok(receipt)
}

/// Does the same with sqlx.
async fn write_by_sqlx(
    connection: &mut PgConnection,
    key: &ResourceKey,
    entry: Entry,
) -> Result<Receipt, Stop<sqlx::Error>> {
    let number = entry.token().as_u64() as i64;
    let mut transaction = connection.begin().await?;
    let receipt = check(&mut transaction, key, entry).await?;
    sqlx::query(WRITE).bind(number).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(receipt)
}

async fn numbers(client: &Client, query: &str) -> Vec<i64> {
    client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_stale_writer_stops_before_its_own_statements() {
    let (_stage, _postgres, mut client) = scene().await;
    let new = Entry::new(token(34)).owner(&owner("b:28999649cafe")).payload(json!({ "state": "paid" }));
    let receipt = write(&mut client, &order(), new.clone()).await.unwrap();
    assert_eq!(receipt, Receipt { version: 1, max_fence: Some(token(34)) });

    let stopped = write(&mut client, &order(), token(33).into()).await.unwrap_err();
    let stale = Refusal::Stale { seen: token(34), got: token(33) };
    assert!(matches!(&stopped, Stop::Refused(refusal) if *refusal == stale), "{stopped}");
    let advice = "refused (stale): the resource has seen token 34; drop the transaction and acquire the lock \
                  again";
    assert_eq!(stopped.to_string(), advice);
    assert_eq!(numbers(&client, "SELECT token FROM orders").await, [34]);

    // A retry after a lost answer gets the first answer, and writes nothing.
    let stopped = write(&mut client, &order(), new).await.unwrap_err();
    assert!(matches!(stopped, Stop::Repeated(again) if again == receipt), "{stopped}");
    let audit = "SELECT owner_prefix || ' ' || (payload->>'state') FROM fence_audit";
    let audit = client.query(audit, &[]).await.unwrap();
    assert_eq!(audit.iter().map(|row| row.get(0)).collect::<Vec<&str>>(), ["b:28999649 paid"]);
}

#[tokio::test]
async fn a_rollback_leaves_neither_fence_nor_audit_row() {
    let (_stage, _postgres, mut client) = scene().await;
    let mut transaction = client.transaction().await.unwrap();
    check(&mut transaction, &order(), token(34)).await.unwrap();
    transaction.execute(WRITE, &[&34_i64]).await.unwrap();
    transaction.rollback().await.unwrap();
    for table in ["orders", "fence_position", "fence_audit"] {
        assert_eq!(numbers(&client, &format!("SELECT count(*) FROM {table}")).await, [0], "{table}");
    }
    write(&mut client, &order(), token(33).into()).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_ignores_the_refusal_commits_nothing() {
    let (_stage, postgres, mut client) = scene().await;
    write(&mut client, &order(), token(34).into()).await.unwrap();
    let too_large = token(i64::MAX as u64 + 1);
    for late in [token(33), too_large] {
        let mut transaction = client.transaction().await.unwrap();
        assert!(check(&mut transaction, &order(), late).await.is_err());
        let refused = transaction.execute(WRITE, &[&33_i64]).await.unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "25P02", "{refused:?}");
        transaction.commit().await.unwrap();

        let mut by_sqlx = PgConnection::connect(&postgres.url()).await.unwrap();
        let mut transaction = by_sqlx.begin().await.unwrap();
        assert!(check(&mut transaction, &order(), late).await.is_err());
        let refused = sqlx::query(WRITE).bind(33_i64).execute(&mut *transaction).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "25P02");
        transaction.commit().await.unwrap();
        assert_eq!(numbers(&client, "SELECT token FROM orders").await, [34]);
    }
}

/// The wrong way that the page on the fence names first.
#[tokio::test]
async fn a_check_that_commits_alone_lets_a_late_write_through() {
    let (_stage, postgres, mut client) = scene().await;
    let mut transaction = client.transaction().await.unwrap();
    check(&mut transaction, &order(), token(33)).await.unwrap();
    transaction.commit().await.unwrap();
    write(&mut connect(&postgres).await, &order(), token(34).into()).await.unwrap();
    client.execute(WRITE, &[&33_i64]).await.unwrap();
    assert_eq!(numbers(&client, "SELECT token FROM orders").await, [33]);
    assert_eq!(numbers(&client, "SELECT token FROM fence_position").await, [34]);
}

#[tokio::test]
async fn numbers_beyond_a_bigint_are_refused_by_name() {
    let (_stage, _postgres, mut client) = scene().await;
    let largest = i64::MAX as u64;
    let stopped = write(&mut client, &order(), token(largest + 1).into()).await.unwrap_err();
    assert!(
        stopped.to_string().starts_with("the fencing token 9223372036854775808 is too large"),
        "{stopped}"
    );
    let numbered = Entry::new(token(1)).seq(WriteSeq::new(largest).unwrap());
    let stopped = write(&mut client, &order(), numbered).await.unwrap_err();
    assert!(stopped.to_string().starts_with("the sequence number 9223372036854775807 is too"), "{stopped}");
    write(&mut client, &order(), token(largest).into()).await.unwrap();
}

/// Draws writes from so few tokens, numbers, owners and payloads that all cases of the rule occur.
fn draw(random: &mut ChaCha8Rng) -> (Guard, Option<OwnerToken>, Entry) {
    let mut below = |limit: u64| random.next_u64() % limit;
    let token = token(1 + below(3));
    let seq = WriteSeq::new(below(3));
    let owner = [None, Some(owner("a:11111111")), Some(owner("b:22222222"))][below(3) as usize].clone();
    let mut entry = Entry::new(token).payload(json!(below(2)));
    if let Some(owner) = &owner {
        entry = entry.owner(owner);
    }
    if let Some(seq) = seq {
        entry = entry.seq(seq);
    }
    (Guard::Token { token, seq }, owner, entry)
}

#[tokio::test]
async fn the_statement_decides_like_the_rule() {
    let (_stage, postgres, mut client) = scene().await;
    let mut by_sqlx = PgConnection::connect(&postgres.url()).await.unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut accepted, mut repeated, mut stale, mut foreign) = (0, 0, 0, 0);
    let mut model = Fence::default();
    for step in 0..600 {
        // A new key every 12 steps: an old one refuses nearly every write.
        if step % 12 == 0 {
            model = Fence::default();
        }
        let key = ResourceKey::new(&format!("k{}", step / 12)).unwrap();
        let (guard, owner, entry) = draw(&mut random);
        let digest = BodyDigest::of(entry.payload_text().as_bytes());
        let expected = model.write(guard, owner.as_ref(), digest, Fencing::On);
        let outcome = if step % 2 == 0 {
            outcome(write(&mut client, &key, entry).await)
        } else {
            outcome(write_by_sqlx(&mut by_sqlx, &key, entry).await)
        };
        assert_eq!(outcome, expected, "step {step}: {guard:?} of {owner:?}");
        match expected {
            WriteOutcome::Accepted(_) => accepted += 1,
            WriteOutcome::Repeated(_) => repeated += 1,
            WriteOutcome::Refused(Refusal::ForeignOwner { .. }) => foreign += 1,
            WriteOutcome::Refused(_) => stale += 1,
        }
    }
    let met = [accepted, repeated, stale, foreign];
    assert!(met.iter().all(|count| *count > 0), "every case must come up: {met:?}");
    assert_eq!(numbers(&client, "SELECT count(*) FROM fence_audit").await, [accepted]);
}

fn outcome<E: std::fmt::Display>(result: Result<Receipt, Stop<E>>) -> WriteOutcome {
    match result {
        Ok(receipt) => WriteOutcome::Accepted(receipt),
        Err(Stop::Repeated(receipt)) => WriteOutcome::Repeated(receipt),
        Err(Stop::Refused(refusal)) => WriteOutcome::Refused(refusal),
        Err(other) => panic!("{other}"),
    }
}

/// Races writers of the tokens 1 to 40 in random order; returns those that were accepted, in any order.
async fn race(postgres: &Postgres, isolation: &'static str) -> Vec<u64> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut tokens: Vec<u64> = (1..=40).collect();
    (1..tokens.len()).for_each(|n| tokens.swap(n, (random.next_u64() % (n as u64 + 1)) as usize));
    let writers = tokens.chunks(5).map(|tokens| {
        let (tokens, url) = (tokens.to_vec(), postgres.url());
        tokio::spawn(async move {
            let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(isolation).await.unwrap();
            let mut accepted = Vec::new();
            for number in tokens {
                let outcome = loop {
                    match write(&mut client, &order(), token(number).into()).await {
                        Err(Stop::Retry(_)) => continue,
                        other => break other,
                    }
                };
                match outcome {
                    Ok(_) => accepted.push(number),
                    Err(Stop::Refused(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            accepted
        })
    });
    try_join_all(writers).await.unwrap().concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_tokens_grow_whatever_the_order_and_isolation() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let (_stage, postgres, client) = scene().await;
        let set = format!("SET default_transaction_isolation TO '{level}'");
        let mut accepted = race(&postgres, Box::leak(set.into_boxed_str())).await;
        accepted.sort_unstable();
        let audit = numbers(&client, "SELECT token FROM fence_audit ORDER BY version").await;
        assert_eq!(audit, accepted.iter().map(|token| *token as i64).collect::<Vec<_>>(), "{level}");
        assert!(audit.is_sorted_by(|a, b| a < b), "{level}: {audit:?}");
        assert_eq!(audit.last(), Some(&40), "{level}: the highest token is never refused");
        assert_eq!(numbers(&client, "SELECT token FROM orders").await, [40], "{level}");
    }
}

#[tokio::test]
async fn a_conflict_of_serializable_transactions_is_retryable() {
    let (_stage, postgres, mut client) = scene().await;
    write(&mut client, &order(), token(1).into()).await.unwrap();
    let mut other = connect(&postgres).await;
    let serializable = tokio_postgres::IsolationLevel::Serializable;
    let mut transaction = client.build_transaction().isolation_level(serializable).start().await.unwrap();
    // Its snapshot is older than the write of the other transaction.
    transaction.query("SELECT token FROM orders", &[]).await.unwrap();
    write(&mut other, &order(), token(2).into()).await.unwrap();
    let stopped = check(&mut transaction, &order(), token(3)).await.unwrap_err();
    assert!(matches!(stopped, Stop::Retry(_)), "{stopped}");
    drop(transaction);
    write(&mut client, &order(), token(3).into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_may_migrate_at_once_and_again() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let pool = sqlx::PgPool::connect(&postgres.url()).await.unwrap();
    let programs = (0..12).map(|n| {
        let (url, pool) = (postgres.url(), pool.clone());
        tokio::spawn(async move {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            for _ in 0..3 {
                if n % 2 == 0 {
                    migrate(&client).await.map_err(|error| format!("{error:?}"))?;
                } else {
                    migrate(&pool).await.map_err(|error| format!("{error:?}"))?;
                }
            }
            Ok::<(), String>(())
        })
    });
    for outcome in try_join_all(programs).await.unwrap() {
        outcome.unwrap();
    }
    let mut client = connect(&postgres).await;
    client.batch_execute(ORDERS).await.unwrap();
    write(&mut client, &order(), token(34).into()).await.unwrap();
    // A later start keeps the fence.
    migrate(&client).await.unwrap();
    assert!(matches!(write(&mut client, &order(), token(33).into()).await, Err(Stop::Refused(_))));
}
