//! The check of the fence where MySQL differs from PostgreSQL, on a live MariaDB: implicit commits, locks of
//! gaps, timeouts, collations, truncation.

use dlock::FencingToken;
use fence::{
    Entry, FencedTable, NotApplied, OwnerToken, Refusal, ResourceKey, Stop, TokenLog, VersionedTable,
    WriteSeq, check, migrate,
};
use futures_util::future::{join, join_all};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection};

use crate::fence_clients::{self, Client};

type Scene = fence_clients::Scene<MySqlConnection>;

fn key(name: &str) -> ResourceKey {
    ResourceKey::new(name).unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

#[tokio::test]
async fn a_transaction_that_ddl_has_committed_is_found() {
    let mut scene = Scene::new().await;
    let mut tx = scene.client.begin_tx().await.unwrap();
    sqlx::query("CREATE TABLE other (id int)").execute(&mut *tx).await.unwrap();
    let stopped = check(&mut tx, &key("k"), token(34)).await.unwrap_err();
    assert!(stopped.to_string().contains("no transaction is open"), "{stopped}");
    assert!(matches!(stopped, Stop::Failed(_)));
    // Further statements do not commit alone.
    MySqlConnection::put(&mut tx, &key("k"), 34).await.unwrap_err();
    drop(tx);
    for table in ["orders", "fence_position", "fence_audit"] {
        let count = scene.client.numbers(&format!("SELECT COUNT(*) FROM {table}")).await;
        assert_eq!(count, [0], "{table}");
    }
}

#[tokio::test]
async fn a_refused_transaction_that_cant_roll_back_loses_its_session() {
    let mut scene = Scene::new().await;
    scene.client.write(&key("k"), token(34).into()).await.unwrap();
    // The server refuses ROLLBACK within a global transaction.
    let mut tx = scene.client.begin_with("XA START 'global'").await.unwrap();
    MySqlConnection::put(&mut tx, &key("other"), 33).await.unwrap();
    let stopped = check(&mut tx, &key("k"), token(33)).await.unwrap_err();
    assert!(matches!(stopped, Stop::Refused(_)), "{stopped}");
    MySqlConnection::put(&mut tx, &key("k"), 33).await.unwrap_err();
    tx.commit().await.unwrap_err();
    assert_eq!(scene.connect().await.numbers("SELECT token FROM orders").await, [34]);
}

#[tokio::test]
async fn a_refusal_within_a_savepoint_ends_the_whole_transaction() {
    let mut scene = Scene::new().await;
    scene.client.write(&key("k"), token(34).into()).await.unwrap();
    let mut tx = scene.client.begin_tx().await.unwrap();
    MySqlConnection::put(&mut tx, &key("other"), 33).await.unwrap();
    let mut nested = Connection::begin(&mut *tx).await.unwrap();
    assert!(check(&mut nested, &key("k"), token(33)).await.is_err());
    MySqlConnection::put(&mut nested, &key("k"), 33).await.unwrap_err();
    nested.commit().await.unwrap_err();
    drop(tx);
    let mut client = scene.connect().await;
    assert_eq!(client.numbers("SELECT token FROM orders").await, [34]);
}

/// A collation could make two of these keys one; a server that is not strict cuts texts off.
#[tokio::test]
async fn every_key_and_owner_is_kept_to_the_byte_without_strict_mode() {
    let mut scene = Scene::new().await;
    scene.client.run("SET SESSION sql_mode = ''").await.unwrap();
    let owner = OwnerToken::new(&"ö".repeat(128)).unwrap();
    let (long, longer) = ("ä".repeat(128), format!("{}a", "ä".repeat(127)));
    for name in ["k", "K", "k ", "ä", "Ä", "a", &long, &longer] {
        let entry = Entry::new(token(34)).owner(&owner);
        let receipt = scene.client.write(&key(name), entry.clone()).await.unwrap();
        assert_eq!(receipt.version, 1, "{name:?}");
        let again = scene.client.write(&key(name), entry).await;
        assert!(matches!(again, Err(Stop::Repeated(_))), "{name:?}: {again:?}");
    }
    let names = "SELECT CONVERT(resource_id USING utf8mb4) FROM fence_audit WHERE LENGTH(resource_id) = 256";
    assert_eq!(scene.client.texts(names).await, [long]);
}

#[tokio::test]
async fn every_token_and_number_fits() {
    let mut scene = Scene::new().await;
    let owner = OwnerToken::new("a:11111111").unwrap();
    let last = WriteSeq::new(u64::MAX - 1).unwrap();
    let largest = Entry::new(token(u64::MAX)).owner(&owner);
    scene.client.write(&key("k"), largest.clone().seq(last)).await.unwrap();
    scene.client.write(&key("k"), largest.clone()).await.unwrap();
    let again = scene.client.write(&key("k"), largest).await;
    assert!(matches!(again, Err(Stop::Repeated(_))), "{again:?}");
    let rows = "SELECT CONCAT(token, '/', seq) FROM fence_audit ORDER BY version";
    let expected = ["18446744073709551615/18446744073709551614", "18446744073709551615/18446744073709551615"];
    assert_eq!(scene.client.texts(rows).await, expected);
}

#[tokio::test]
async fn a_deadlock_is_retryable_and_the_other_transaction_goes_on() {
    let scene = Scene::new().await;
    let [mut one, mut two] = [scene.connect().await, scene.connect().await];
    let [mut one, mut two] = [one.begin_tx().await.unwrap(), two.begin_tx().await.unwrap()];
    check(&mut one, &key("k1"), token(1)).await.unwrap();
    check(&mut two, &key("k2"), token(2)).await.unwrap();
    let (k1, k2) = (key("k1"), key("k2"));
    let outcomes = join(check(&mut one, &k2, token(1)), check(&mut two, &k1, token(2))).await;
    match outcomes {
        (Err(Stop::Retry(_)), Ok(_)) => {
            MySqlConnection::put(&mut one, &k1, 1).await.unwrap_err();
            two.commit().await.unwrap();
        }
        (Ok(_), Err(Stop::Retry(_))) => {
            MySqlConnection::put(&mut two, &k1, 2).await.unwrap_err();
            one.commit().await.unwrap();
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_timeout_of_a_lock_is_retryable() {
    let mut scene = Scene::new().await;
    let mut other = scene.connect().await;
    other.run("SET innodb_lock_wait_timeout = 1").await.unwrap();
    let mut tx = scene.client.begin_tx().await.unwrap();
    check(&mut tx, &key("k"), token(1)).await.unwrap();
    let mut second = other.begin_tx().await.unwrap();
    MySqlConnection::put(&mut second, &key("other"), 2).await.unwrap();
    let stopped = check(&mut second, &key("k"), token(2)).await.unwrap_err();
    assert!(matches!(stopped, Stop::Retry(_)), "{stopped}");
    // The server has ended the statement alone; the check ends the transaction.
    second.commit().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(scene.client.numbers("SELECT COUNT(*) FROM orders").await, [0]);
}

/// MariaDB's own error for an old snapshot, its default from 11.6 on.
#[tokio::test]
async fn a_row_that_changed_since_the_snapshot_is_retryable() {
    let mut scene = Scene::new().await;
    let mut other = scene.connect().await;
    scene.client.run("SET innodb_snapshot_isolation = ON").await.unwrap();
    other.write(&key("k"), token(1).into()).await.unwrap();
    let mut tx = scene.client.begin_tx().await.unwrap();
    MySqlConnection::number(&mut tx, "SELECT token FROM orders").await;
    other.write(&key("k"), token(2).into()).await.unwrap();
    let stopped = check(&mut tx, &key("k"), token(3)).await.unwrap_err();
    assert!(matches!(&stopped, Stop::Retry(error) if error.to_string().contains("1020")), "{stopped}");
}

/// A `SELECT … FOR UPDATE` of a missing row would lock the gap for each of them, and one would be the victim.
#[tokio::test]
async fn first_writers_of_keys_wait_without_a_deadlock() {
    let scene = Scene::new().await;
    let mut writers = Vec::new();
    for number in 1..=12_u64 {
        let mut client = scene.connect().await;
        writers.push(async move {
            let mut outcomes = Vec::new();
            for round in 0..5 {
                // Three writers for each key.
                let key = key(&format!("k{round}-{}", number % 4));
                outcomes.push(client.write(&key, token(number).into()).await);
            }
            outcomes
        });
    }
    for outcome in join_all(writers).await.into_iter().flatten() {
        assert!(matches!(outcome, Ok(_) | Err(Stop::Refused(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn without_autocommit_a_refusal_commits_nothing() {
    let mut scene = Scene::new().await;
    scene.client.run("SET autocommit = 0").await.unwrap();
    scene.client.write(&key("k"), token(34).into()).await.unwrap();
    let mut tx = scene.client.begin_tx().await.unwrap();
    assert!(check(&mut tx, &key("k"), token(33)).await.is_err());
    MySqlConnection::put(&mut tx, &key("k"), 33).await.unwrap_err();
    tx.commit().await.unwrap();
    scene.client.write(&key("k"), token(35).into()).await.unwrap();
    assert_eq!(scene.connect().await.numbers("SELECT token FROM orders").await, [35]);
}

#[tokio::test]
async fn migrate_does_not_commit_an_open_transaction() {
    let mut scene = Scene::new().await;
    let mut tx = scene.client.begin_tx().await.unwrap();
    MySqlConnection::put(&mut tx, &key("k"), 34).await.unwrap();
    let refused = migrate(&mut *tx).await.unwrap_err();
    assert!(refused.to_string().contains("call it before the transaction"), "{refused}");
    tx.rollback().await.unwrap();
    assert_eq!(scene.client.numbers("SELECT COUNT(*) FROM orders").await, [0]);
}

#[tokio::test]
async fn a_session_that_has_created_the_tables_holds_no_lock() {
    let mut scene = Scene::new().await;
    let mut other = scene.connect().await;
    let is_free = "SELECT IS_FREE_LOCK(CONCAT('fencepost_fence.', SHA1(DATABASE())))";
    assert_eq!(other.numbers(is_free).await, [1]);
    let lock = "SELECT GET_LOCK(CONCAT('fencepost_fence.', SHA1(DATABASE())), 0)";
    assert_eq!(other.numbers(lock).await, [1]);
    // Another program that creates the tables is waited for.
    let unlocked = async {
        let waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'";
        while other.numbers(waits).await == [0] {}
        other.run("SELECT RELEASE_ALL_LOCKS()").await.unwrap();
    };
    let (migrated, ()) = join(scene.client.migrate(), unlocked).await;
    migrated.unwrap();
}

#[tokio::test]
async fn a_fence_column_refuses_in_one_statement() {
    let mut scene = Scene::new().await;
    let table = "CREATE TABLE `odd ``name` (id int PRIMARY KEY, body text, fence bigint unsigned NOT NULL \
                 DEFAULT 0)";
    scene.client.run(table).await.unwrap();
    scene.client.run("INSERT INTO `odd ``name` VALUES (7, 'empty', 0)").await.unwrap();
    let documents = FencedTable::new("odd `name", "id", "fence").mysql();
    let largest = token(u64::MAX);
    let mut write = async |id: i32, token: FencingToken, body: &str| {
        let update = sqlx::query(AssertSqlSafe(documents.update(&["body"])));
        let update = update.bind(token.as_u64()).bind(body.to_owned()).bind(id).bind(token.as_u64());
        if update.execute(&mut scene.client).await.unwrap().rows_affected() > 0 {
            return Ok(());
        }
        let find = sqlx::query_scalar(AssertSqlSafe(documents.find())).bind(id);
        let fence: Option<u64> = find.fetch_optional(&mut scene.client).await.unwrap();
        Err(FencedTable::refusal_unsigned(token, fence))
    };
    assert_eq!(write(7, token(34), "new").await, Ok(()));
    let stale = Refusal::Stale { seen: token(34), got: token(33) };
    assert_eq!(write(7, token(33), "old").await, Err(NotApplied::Refused(stale)));
    assert_eq!(write(8, token(33), "old").await, Err(NotApplied::Missing));
    assert_eq!(write(7, largest, "last").await, Ok(()));
    let stale = Refusal::Stale { seen: largest, got: token(35) };
    assert_eq!(write(7, token(35), "late").await, Err(NotApplied::Refused(stale)));
    assert_eq!(scene.client.texts("SELECT body FROM `odd ``name`").await, ["last"]);
}

#[tokio::test]
async fn a_version_column_loses_no_increment() {
    let mut scene = Scene::new().await;
    let table = "CREATE TABLE counters (id int PRIMARY KEY, count bigint NOT NULL, version bigint NOT NULL \
                 DEFAULT 0)";
    scene.client.run(table).await.unwrap();
    scene.client.run("INSERT INTO counters VALUES (7, 0, 0)").await.unwrap();
    let counters = VersionedTable::new("counters", "id", "version").mysql();
    let (read, write) = (counters.read(&["count"]), counters.update(&["count"]));
    let mut writers = Vec::new();
    for _ in 0..4 {
        let (mut client, read, write) = (scene.connect().await, &read, &write);
        writers.push(async move {
            let mut count_done = 0;
            while count_done < 10 {
                let row = sqlx::query_as(AssertSqlSafe(read.clone())).bind(7).fetch_one(&mut client);
                let (version, count): (i64, i64) = row.await.unwrap();
                let write = sqlx::query(AssertSqlSafe(write.clone())).bind(count + 1).bind(7).bind(version);
                count_done += write.execute(&mut client).await.unwrap().rows_affected();
            }
        });
    }
    join_all(writers).await;
    assert_eq!(scene.client.numbers("SELECT count FROM counters").await, [40]);
}

#[tokio::test]
async fn a_log_of_tokens_keeps_the_first_row_of_each() {
    let mut scene = Scene::new().await;
    let table = "CREATE TABLE emails (customer int, token bigint unsigned, body text NOT NULL, PRIMARY KEY \
                 (customer, token))";
    scene.client.run(table).await.unwrap();
    let emails = TokenLog::new("emails", "customer", "token").mysql();
    let mut tx = scene.client.begin_tx().await.unwrap();
    let mut outcomes = Vec::new();
    for (token, body) in [(u64::MAX, "new"), (u64::MAX, "again"), (33, "late")] {
        let insert = sqlx::query(AssertSqlSafe(emails.insert(&["body"]))).bind(7).bind(token).bind(body);
        outcomes.push(match insert.execute(&mut *tx).await {
            Ok(_) => "new",
            Err(error) if error.as_database_error().is_some_and(|e| e.is_unique_violation()) => "again",
            Err(error) => panic!("{error}"),
        });
    }
    tx.commit().await.unwrap();
    assert_eq!(outcomes, ["new", "again", "new"]);
    let newest = sqlx::query_as(AssertSqlSafe(emails.newest(&["body"]))).bind(7);
    let newest: (u64, String) = newest.fetch_one(&mut scene.client).await.unwrap();
    assert_eq!(newest, (u64::MAX, "new".to_owned()));
}
