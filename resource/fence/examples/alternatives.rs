//! Run it: `cargo run --all-features --example alternatives -- postgresql://USER@HOST/DB`.
//!
//! Four ways to keep late writers out without the tables of `check`, each on a table of its own: a fence
//! column in one statement, a version column with retries, rows that are only inserted, and an advisory lock,
//! which compares with them.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use dlock::FencingToken;
use fence::{FencedTable, NotApplied, TokenLog, VersionedTable, bigint};
use tokio_postgres::{Client, Error, NoTls};

/// Each run has new tables.
const TABLES: &str = "DROP TABLE IF EXISTS documents, counters, emails, jobs;
CREATE TABLE documents (id bigint PRIMARY KEY, body text NOT NULL, fence bigint NOT NULL DEFAULT 0);
INSERT INTO documents VALUES (7, 'empty');
CREATE TABLE counters (id bigint PRIMARY KEY, count bigint NOT NULL, version bigint NOT NULL DEFAULT 0);
INSERT INTO counters VALUES (7, 0);
CREATE TABLE emails (customer bigint, token bigint, body text NOT NULL, PRIMARY KEY (customer, token));
CREATE TABLE jobs (id bigint PRIMARY KEY, done_by text);
INSERT INTO jobs VALUES (7);";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url =
        std::env::args().nth(1).unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let (mut one, mut two) = (connect(&url).await?, connect(&url).await?);
    one.batch_execute(TABLES).await?;
    let (old, new) = ("33".parse()?, "34".parse()?);

    println!("one statement, 34: {}", in_words(write_document(&one, 7, new, "new").await?));
    println!("one statement, 33: {}", in_words(write_document(&two, 7, old, "old").await?));
    println!("one statement, no row: {}", in_words(write_document(&two, 8, old, "old").await?));

    let mut tasks = Vec::new();
    for client in [connect(&url).await?, connect(&url).await?] {
        tasks.push(tokio::spawn(async move {
            for _ in 0..50 {
                // Two writers: one of them gets through each time, so a hundred tries are enough.
                if increment(&client, 100).await?.is_none() {
                    return Err("a hundred tries were too few".into());
                }
            }
            Ok::<(), Failure>(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    let count: i64 = one.query_one("SELECT count FROM counters", &[]).await?.get(0);
    println!("version column: {count} of 100 increments");
    println!("version column, no tries: {:?}", increment(&one, 0).await?);

    println!("insert only, 34: {:?}", insert_email(&one, new, "hello").await?);
    println!("insert only, 34 again: {:?}", insert_email(&two, new, "hello").await?);
    println!("insert only, 33 later: {:?}", insert_email(&two, old, "late").await?);
    let newest = TokenLog::new("emails", "customer", "token").newest(&["body"]);
    let newest: i64 = one.query_one(&newest, &[&7_i64]).await?.get(0);
    println!("insert only, readers see {newest}");

    let transaction = one.transaction().await?;
    println!("advisory lock: {:?}", run_job(&transaction, "one").await?);
    let other = two.transaction().await?;
    println!("advisory lock, meanwhile: {:?}", run_job(&other, "two").await?);
    other.rollback().await?;
    transaction.commit().await?;
    let other = two.transaction().await?;
    println!("advisory lock, a late holder: {:?}", run_job(&other, "two").await?);
    Ok(())
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn in_words(written: Result<(), NotApplied>) -> String {
    written.map_or_else(|reason| reason.to_string(), |()| "written".to_owned())
}

/// Writes a document in one statement, unless a token as high as this one has written it.
///
/// Take it if a write concerns one row. There is no transaction to forget and no row to wait for, but also no
/// audit row, and a retry after a lost answer looks like a late write.
async fn write_document(
    client: &Client,
    id: i64,
    token: FencingToken,
    body: &str,
) -> Result<Result<(), NotApplied>, Failure> {
    let documents = FencedTable::new("documents", "id", "fence");
    let rows = client.execute(&documents.update(&["body"]), &[&id, &bigint(token)?, &body]).await?;
    if rows > 0 {
        return Ok(Ok(()));
    }
    let row = client.query_opt(&documents.find(), &[&id]).await?;
    Ok(Err(FencedTable::refusal(token, row.map(|row| row.get(0)))))
}

/// Adds one to a counter on the condition that its version has not changed since it was read; reads again if
/// it has, at most `tries` times. Returns the new value, or `None` if other writers were faster each time.
///
/// Take it if the new value follows from the old one and needs no work outside of the database: it needs no
/// lock at all. Each failed try means that another writer got through, so the number of tries that can fail
/// is limited by the number of rivals. Work with side effects would be done again in each try.
async fn increment(client: &Client, tries: usize) -> Result<Option<i64>, Error> {
    let counters = VersionedTable::new("counters", "id", "version");
    let (read, write) = (counters.read(&["count"]), counters.update(&["count"]));
    for _ in 0..tries {
        let row = client.query_one(&read, &[&7_i64]).await?;
        let (version, count): (i64, i64) = (row.get(0), row.get(1));
        if client.execute(&write, &[&7_i64, &version, &(count + 1)]).await? > 0 {
            return Ok(Some(count + 1));
        }
    }
    Ok(None)
}

/// The outcome of an insert under a unique token.
#[derive(Debug, PartialEq)]
#[must_use]
enum Inserted {
    New,
    /// The row of this token exists: a retry.
    Again,
}

/// Records an e-mail under its token, and never changes a row.
///
/// Take it for logs and outboxes. The unique token makes a retry harmless, and nothing is overwritten. But a
/// late row is *not* refused: readers must take the row with the highest token, and may have acted on an
/// older one.
async fn insert_email(client: &Client, token: FencingToken, body: &str) -> Result<Inserted, Failure> {
    let emails = TokenLog::new("emails", "customer", "token");
    let rows = client.execute(&emails.insert(&["body"]), &[&7_i64, &bigint(token)?, &body]).await?;
    Ok(if rows > 0 { Inserted::New } else { Inserted::Again })
}

/// The outcome of work under an advisory lock.
#[derive(Debug, PartialEq)]
#[must_use]
enum Locked {
    Done,
    /// Another session has the lock now.
    Taken,
}

/// Marks a job as done under an advisory lock, which ends with the transaction.
///
/// Take it if all writers use this database and the work fits into one transaction: no lock server, no TTL,
/// and no holder that writes after its lock has ended, since both end together. But the lock has no memory:
/// it orders sessions, not holders. A process whose session was lost comes back with a new one, acquires the
/// lock again and overwrites the work of those in between, as the last line of this program shows. Nor is the
/// number of a job a name: two programs that use one number share a lock.
async fn run_job(transaction: &tokio_postgres::Transaction<'_>, by: &str) -> Result<Locked, Error> {
    let lock = transaction.query_one("SELECT pg_try_advisory_xact_lock(7)", &[]).await?;
    if !lock.get::<_, bool>(0) {
        return Ok(Locked::Taken);
    }
    transaction.execute("UPDATE jobs SET done_by = $1 WHERE id = 7", &[&by]).await?;
    Ok(Locked::Done)
}
