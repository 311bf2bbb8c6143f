//! The check of the fence in a user's transaction, on live servers: PostgreSQL with both clients, and
//! MariaDB.

use dlock::FencingToken;
use fence::{
    BodyDigest, Entry, Fence, Fencing, Guard, MaxJump, OwnerToken, Receipt, Refusal, ResourceKey, Stop,
    WriteOutcome, WriteSeq, check,
};
use futures_util::future::join_all;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::fence_clients::{Client, Scene, for_each_client};

for_each_client!(
    a_stale_writer_stops_before_its_own_statements,
    a_rollback_leaves_neither_fence_nor_audit_row,
    a_caller_that_ignores_the_refusal_commits_nothing,
    a_check_that_commits_alone_lets_a_late_write_through,
    the_check_decides_like_the_rule,
    a_jump_is_refused_and_the_lock_goes_on,
    the_first_token_of_a_key_has_a_limit_of_its_own,
    accepted_tokens_grow_whatever_the_order_and_isolation,
    a_snapshot_older_than_the_fence_is_retryable,
    programs_may_migrate_at_once_and_again,
);

fn order() -> ResourceKey {
    ResourceKey::new("orders:42").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn owner(name: &str) -> OwnerToken {
    OwnerToken::new(name).unwrap()
}

async fn a_stale_writer_stops_before_its_own_statements<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let new = Entry::new(token(34)).owner(&owner("b:28999649cafe")).payload(json!({ "state": "paid" }));
    let receipt = scene.client.write(&order(), new.clone()).await.unwrap();
    assert_eq!(receipt, Receipt { version: 1, max_fence: Some(token(34)) });

    let stopped = scene.client.write(&order(), token(33).into()).await.unwrap_err();
    let stale = Refusal::Stale { seen: token(34), got: token(33) };
    assert!(matches!(&stopped, Stop::Refused(refusal) if *refusal == stale), "{stopped}");
    let advice = "refused (stale): the resource has seen token 34; drop the transaction and acquire the lock \
                  again";
    assert_eq!(stopped.to_string(), advice);
    assert_eq!(scene.client.numbers("SELECT token FROM orders").await, [34]);

    // A retry after a lost answer gets the first answer, and writes nothing.
    let stopped = scene.client.write(&order(), new).await.unwrap_err();
    assert!(matches!(stopped, Stop::Repeated(again) if again == receipt), "{stopped}");
    assert_eq!(scene.client.texts(C::AUDIT).await, ["b:28999649 paid"]);
}

async fn a_rollback_leaves_neither_fence_nor_audit_row<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let mut tx = scene.client.begin_tx().await.unwrap();
    check(&mut tx, &order(), token(34)).await.unwrap();
    C::put(&mut tx, &order(), 34).await.unwrap();
    C::rollback(tx).await.unwrap();
    for table in ["orders", "fence_position", "fence_audit"] {
        let count = scene.client.numbers(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(count, [0], "{table}");
    }
    scene.client.write(&order(), token(33).into()).await.unwrap();
}

async fn a_caller_that_ignores_the_refusal_commits_nothing<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    scene.client.write(&order(), token(34).into()).await.unwrap();
    let jump = Entry::new(token(u64::MAX)).max_jump(MaxJump::COUNTER);
    for late in [token(33).into(), jump] {
        let mut tx = scene.client.begin_tx().await.unwrap();
        // The caller's statement before the check is lost, too.
        C::put(&mut tx, &ResourceKey::new("orders:41").unwrap(), 33).await.unwrap();
        assert!(matches!(check(&mut tx, &order(), late).await, Err(Stop::Refused(_))));
        for _ in 0..2 {
            let error = C::put(&mut tx, &order(), 33).await.unwrap_err();
            assert_eq!(C::sqlstate(&error), C::CANNOT_WRITE, "{error:?}");
        }
        C::commit(tx).await.unwrap();
        assert_eq!(scene.client.numbers("SELECT token FROM orders").await, [34]);
        assert_eq!(scene.client.numbers("SELECT token FROM fence_audit").await, [34]);
    }
    // The connection is as before.
    scene.client.write(&order(), token(35).into()).await.unwrap();
}

/// The wrong way that the page on the fence names first.
async fn a_check_that_commits_alone_lets_a_late_write_through<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let mut tx = scene.client.begin_tx().await.unwrap();
    check(&mut tx, &order(), token(33)).await.unwrap();
    C::commit(tx).await.unwrap();
    scene.connect().await.write(&order(), token(34).into()).await.unwrap();
    let mut tx = scene.client.begin_tx().await.unwrap();
    C::put(&mut tx, &order(), 33).await.unwrap();
    C::commit(tx).await.unwrap();
    assert_eq!(scene.client.numbers("SELECT token FROM orders").await, [33]);
    assert_eq!(scene.client.numbers("SELECT token FROM fence_position").await, [34]);
}

/// Draws writes from so few tokens, numbers, owners, payloads and limits that all cases of the rule occur.
fn draw(random: &mut ChaCha8Rng) -> (Guard, Option<OwnerToken>, Option<MaxJump>, Entry) {
    let mut below = |limit: u64| random.next_u64() % limit;
    let token = token(1 + below(3));
    let seq = WriteSeq::new(below(3));
    let owner = [None, Some(owner("a:11111111")), Some(owner("b:22222222"))][below(3) as usize].clone();
    let max_jump = [None, None, Some(MaxJump::new(2, 1)), Some(MaxJump::new(1, 2))][below(4) as usize];
    let mut entry = Entry::new(token).payload(json!(below(2)));
    if let Some(owner) = &owner {
        entry = entry.owner(owner);
    }
    if let Some(seq) = seq {
        entry = entry.seq(seq);
    }
    if let Some(max_jump) = max_jump {
        entry = entry.max_jump(max_jump);
    }
    (Guard::Token { token, seq }, owner, max_jump, entry)
}

async fn the_check_decides_like_the_rule<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let [mut accepted, mut repeated, mut stale, mut foreign, mut jumps] = [0; 5];
    let mut model = Fence::default();
    for step in 0..600 {
        // A new key every 12 steps: an old one refuses nearly every write.
        if step % 12 == 0 {
            model = Fence::default();
        }
        let key = ResourceKey::new(&format!("k{}", step / 12)).unwrap();
        let (guard, owner, max_jump, entry) = draw(&mut random);
        let digest = BodyDigest::of(entry.payload_text().as_bytes());
        let expected = model.write_within(max_jump, guard, owner.as_ref(), digest, Fencing::On);
        let outcome = outcome(scene.client.write(&key, entry).await);
        assert_eq!(outcome, expected, "step {step}: {guard:?} of {owner:?}");
        match expected {
            WriteOutcome::Accepted(_) => accepted += 1,
            WriteOutcome::Repeated(_) => repeated += 1,
            WriteOutcome::Refused(Refusal::ForeignOwner { .. }) => foreign += 1,
            WriteOutcome::Refused(Refusal::Jump { .. }) => jumps += 1,
            WriteOutcome::Refused(_) => stale += 1,
        }
    }
    let met = [accepted, repeated, stale, foreign, jumps];
    assert!(met.iter().all(|count| *count > 0), "every case must come up: {met:?}");
    assert_eq!(scene.client.numbers("SELECT count(*) FROM fence_audit").await, [accepted]);
}

fn outcome<E: std::fmt::Display>(result: Result<Receipt, Stop<E>>) -> WriteOutcome {
    match result {
        Ok(receipt) => WriteOutcome::Accepted(receipt),
        Err(Stop::Repeated(receipt)) => WriteOutcome::Repeated(receipt),
        Err(Stop::Refused(refusal)) => WriteOutcome::Refused(refusal),
        Err(other) => panic!("{other}"),
    }
}

async fn a_jump_is_refused_and_the_lock_goes_on<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let limited = |number| Entry::new(token(number)).max_jump(MaxJump::COUNTER);
    scene.client.write(&order(), limited(34)).await.unwrap();
    for poison in [u64::MAX, i64::MAX as u64, 1_000_035] {
        let stopped = scene.client.write(&order(), limited(poison)).await.unwrap_err();
        let jump = Refusal::Jump { seen: Some(token(34)), got: token(poison), max: 1_000_034 };
        assert!(matches!(&stopped, Stop::Refused(refusal) if *refusal == jump), "{stopped}");
        let advice = format!(
            "refused (jump): the resource has seen token 34, and {poison} is above 1000034, the largest that \
             it accepts now: find out who made this token"
        );
        assert_eq!(stopped.to_string(), advice);
    }
    scene.client.write(&order(), limited(35)).await.unwrap();
    scene.client.write(&order(), limited(1_000_035)).await.unwrap();

    // Without the limit one write locks the key.
    scene.client.write(&order(), token(i64::MAX as u64).into()).await.unwrap();
    let stopped = scene.client.write(&order(), limited(1_000_036)).await.unwrap_err();
    assert!(matches!(stopped, Stop::Refused(Refusal::Stale { .. })), "{stopped}");
}

async fn the_first_token_of_a_key_has_a_limit_of_its_own<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let limited = |number| Entry::new(token(number)).max_jump(MaxJump::new(1000, 10));
    for poison in [u64::MAX, i64::MAX as u64, 1001] {
        let stopped = scene.client.write(&order(), limited(poison)).await.unwrap_err();
        let jump = Refusal::Jump { seen: None, got: token(poison), max: 1000 };
        assert!(matches!(&stopped, Stop::Refused(refusal) if *refusal == jump), "{stopped}");
    }
    scene.client.write(&order(), limited(1000)).await.unwrap();
    // Above the limit for a first one.
    scene.client.write(&order(), limited(1010)).await.unwrap();
    assert_eq!(scene.client.numbers("SELECT token FROM fence_audit ORDER BY version").await, [1000, 1010]);
}

/// Writes the order with each of the tokens; returns those that were accepted.
async fn write_all<C: Client>(mut client: C, tokens: &[u64]) -> Vec<u64> {
    let mut accepted = Vec::new();
    for number in tokens {
        let outcome = loop {
            match client.write(&order(), token(*number).into()).await {
                Err(Stop::Retry(_)) => {}
                other => break other,
            }
        };
        match outcome {
            Ok(_) => accepted.push(*number),
            Err(Stop::Refused(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    accepted
}

async fn accepted_tokens_grow_whatever_the_order_and_isolation<C: Client>() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let mut scene = Scene::<C>::new().await;
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut tokens: Vec<u64> = (1..=40).collect();
        (1..tokens.len()).for_each(|n| tokens.swap(n, (random.next_u64() % (n as u64 + 1)) as usize));
        let mut writers = Vec::new();
        for tokens in tokens.chunks(5) {
            let mut client = scene.connect().await;
            client.isolate(level).await;
            writers.push(write_all(client, tokens));
        }
        let mut accepted = join_all(writers).await.concat();
        accepted.sort_unstable();
        let audit = scene.client.numbers("SELECT token FROM fence_audit ORDER BY version").await;
        assert_eq!(audit, accepted.iter().map(|token| *token as i64).collect::<Vec<_>>(), "{level}");
        assert!(audit.is_sorted_by(|a, b| a < b), "{level}: {audit:?}");
        assert_eq!(audit.last(), Some(&40), "{level}: the highest token is never refused");
        assert_eq!(scene.client.numbers("SELECT token FROM orders").await, [40], "{level}");
    }
}

async fn a_snapshot_older_than_the_fence_is_retryable<C: Client>() {
    let mut scene = Scene::<C>::new().await;
    let mut other = scene.connect().await;
    scene.client.isolate("repeatable read").await;
    // A new key, and one that the snapshot knows.
    for number in [1, 3] {
        let mut tx = scene.client.begin_tx().await.unwrap();
        C::number(&mut tx, "SELECT token FROM orders").await;
        other.write(&order(), token(number).into()).await.unwrap();
        let stopped = check(&mut tx, &order(), token(number + 1)).await.unwrap_err();
        assert!(matches!(stopped, Stop::Retry(_)), "{stopped}");
        C::rollback(tx).await.unwrap();
        scene.client.write(&order(), token(number + 1).into()).await.unwrap();
    }
    assert_eq!(scene.client.numbers("SELECT token FROM fence_audit ORDER BY version").await, [1, 2, 3, 4]);
}

async fn programs_may_migrate_at_once_and_again<C: Client>() {
    let mut scene = Scene::<C>::without_tables().await;
    let mut programs = Vec::new();
    for _ in 0..12 {
        let mut client = scene.connect().await;
        programs.push(async move {
            for _ in 0..3 {
                client.migrate().await?;
            }
            Ok::<(), C::Error>(())
        });
    }
    for outcome in join_all(programs).await {
        outcome.unwrap();
    }
    scene.create_orders().await;
    scene.client.write(&order(), token(34).into()).await.unwrap();
    // A later start keeps the fence.
    scene.client.migrate().await.unwrap();
    assert!(matches!(scene.client.write(&order(), token(33).into()).await, Err(Stop::Refused(_))));
}

/// Columns of PostgreSQL are signed.
#[tokio::test]
async fn numbers_beyond_a_bigint_are_refused_by_name() {
    let mut scene = Scene::<tokio_postgres::Client>::new().await;
    let client = &mut scene.client;
    let largest = i64::MAX as u64;
    let stopped = client.write(&order(), token(largest + 1).into()).await.unwrap_err();
    assert!(
        stopped.to_string().starts_with("the fencing token 9223372036854775808 is too large"),
        "{stopped}"
    );
    let numbered = Entry::new(token(1)).seq(WriteSeq::new(largest).unwrap());
    let stopped = client.write(&order(), numbered).await.unwrap_err();
    assert!(stopped.to_string().starts_with("the sequence number 9223372036854775807 is too"), "{stopped}");
    let mut tx = client.transaction().await.unwrap();
    assert!(check(&mut tx, &order(), token(largest + 1)).await.is_err());
    let error = <tokio_postgres::Client as Client>::put(&mut tx, &order(), 1).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "25P02");
    tx.commit().await.unwrap();
    client.write(&order(), token(largest).into()).await.unwrap();
}

#[tokio::test]
async fn a_conflict_of_serializable_transactions_is_retryable() {
    let mut scene = Scene::<tokio_postgres::Client>::new().await;
    scene.client.write(&order(), token(1).into()).await.unwrap();
    let mut other = scene.connect().await;
    let serializable = tokio_postgres::IsolationLevel::Serializable;
    let mut tx = scene.client.build_transaction().isolation_level(serializable).start().await.unwrap();
    // Its snapshot is older than the write of the other transaction.
    tx.query("SELECT token FROM orders", &[]).await.unwrap();
    other.write(&order(), token(2).into()).await.unwrap();
    let stopped = check(&mut tx, &order(), token(3)).await.unwrap_err();
    assert!(matches!(stopped, Stop::Retry(_)), "{stopped}");
    drop(tx);
    scene.client.write(&order(), token(3).into()).await.unwrap();
}

#[tokio::test]
async fn a_pool_creates_the_tables() {
    let scene = Scene::<sqlx::PgConnection>::without_tables().await;
    let pool = sqlx::PgPool::connect(&scene.server.url()).await.unwrap();
    fence::migrate(&pool).await.unwrap();
    let scene = Scene::<sqlx::MySqlConnection>::without_tables().await;
    let pool = sqlx::MySqlPool::connect(&scene.server.url()).await.unwrap();
    // The first connection is not given back; its lock is.
    for _ in 0..2 {
        fence::migrate(&pool).await.unwrap();
    }
    let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM fence_audit").fetch_one(&pool).await.unwrap();
    assert_eq!(count, 0);
}
