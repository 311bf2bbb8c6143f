//! Run it: `cargo run --all-features --example invoice_cron -- postgresql://USER@HOST/DB redis://HOST:6379`.
//!
//! A cron makes an invoice at each tick, on one of several machines. The first machine begins a tick and
//! pauses until its lease has ended; the second one takes the tick over. The first one's commit is refused,
//! and a third machine finds the tick done: there is one invoice.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::time::Duration;

use dlock::{AnyBackend, Handle, Lock, LockKey, Options, TokioRuntime};
use fence::cron::{Every, Missed, Policy, Tick};
use fence::{Entry, OwnerToken, ResourceKey, Stop, WriteSeq, begin_tick, claim_ticks, finish_tick};
use tokio_postgres::{Client, Error, NoTls};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS invoices (id serial PRIMARY KEY, tick bigint NOT NULL)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut urls = std::env::args().skip(1);
    let postgres = urls.next().unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let redis = urls.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let (mut client, connection) = tokio_postgres::connect(&postgres, NoTls).await?;
    tokio::spawn(connection);
    fence::migrate(&client).await?;
    client.batch_execute(TABLE).await?;

    let lock = Lock::connect(&redis, Options::new(Duration::from_millis(300))).await?;
    let key = LockKey::new("cron", "invoices")?;
    let paused = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    let tick =
        begin(&mut client, &paused).await?.ok_or("a tick is due, by a clock that no tick is ahead of")?;
    // The first machine renews nothing, as if it were paused: the next ones acquire the lock.
    let second = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    if let Some(tick) = begin(&mut client, &second).await? {
        say("second", finish(&mut client, &second, tick).await)?;
    }
    say("first", finish(&mut client, &paused, tick).await)?;
    second.release().await?;
    let third = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    say("third", finish(&mut client, &third, tick).await)?;
    third.release().await?;
    let row = client.query_one("SELECT count(*) FROM invoices", &[]).await?;
    println!("{} invoice", row.get::<_, i64>(0));
    Ok(())
}

/// Claims the cron, and begins the latest tick that is due. The server's clock decides.
async fn begin(client: &mut Client, handle: &Handle<AnyBackend<TokioRuntime>>) -> Outcome<Option<Tick>> {
    // A tick a year, so that one run of this program is always within one.
    let year = Duration::from_secs(365 * 24 * 3600);
    let policy = Policy { late_max: year, missed: Missed::Latest };
    let key = ResourceKey::try_from(handle.key())?;
    let mut transaction = client.transaction().await?;
    let seen = claim_ticks(&mut transaction, &key, entry(handle, 1)?).await?;
    let now_ms = seen.now_ms.ok_or("PostgreSQL has a clock")?;
    let due = policy.due(&Every::new(year, Duration::ZERO)?, seen.last, now_ms);
    let Some(tick) = due.run.last().copied() else { return Ok(None) };
    let attempt = begin_tick(&mut transaction, &key, entry(handle, 2)?, tick).await?;
    transaction.commit().await?;
    println!("token {} begins the tick, attempt {attempt}", handle.fence());
    Ok(Some(tick))
}

/// Makes the invoice, and the tick done, in one transaction.
async fn finish(
    client: &mut Client,
    handle: &Handle<AnyBackend<TokioRuntime>>,
    tick: Tick,
) -> Outcome<Result<(), Stop<Error>>> {
    let (key, entry) = (ResourceKey::try_from(handle.key())?, entry(handle, 3)?);
    Ok(invoice(client, &key, entry, tick).await)
}

async fn invoice(
    client: &mut Client,
    key: &ResourceKey,
    entry: Entry,
    tick: Tick,
) -> Result<(), Stop<Error>> {
    let mut transaction = client.transaction().await?;
    finish_tick(&mut transaction, key, entry, tick).await?;
    let number = tick.as_u64().cast_signed();
    transaction.execute("INSERT INTO invoices (tick) VALUES ($1)", &[&number]).await?;
    Ok(transaction.commit().await?)
}

/// Returns the entry of the grant's transaction `number`.
fn entry(handle: &Handle<AnyBackend<TokioRuntime>>, number: u64) -> Outcome<Entry> {
    let owner = OwnerToken::try_from(handle.owner())?;
    let seq = WriteSeq::new(number).ok_or("numbers begin with 1")?;
    Ok(Entry::new(handle.fence()).owner(&owner).seq(seq))
}

fn say(machine: &str, finished: Outcome<Result<(), Stop<Error>>>) -> Outcome<()> {
    match finished? {
        Ok(()) => println!("the {machine} machine made the invoice"),
        Err(Stop::Repeated(_)) => println!("the {machine} machine found the tick done"),
        Err(Stop::Refused(_)) => println!("the {machine} machine came too late: its invoice is dropped"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
