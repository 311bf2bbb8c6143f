//! Run it: `cargo run --all-features --example seat_refund -- postgresql://USER@HOST/DB redis://HOST:6379`.
//!
//! Two buyers pay for one seat. Ada's payment takes longer than her lease, and Bob gets the seat meanwhile:
//! the fence refuses Ada, and she is refunded. With `lock-only` as a third argument the seat is sold twice.
//! With a step of `booking` as a fourth one, the process is killed at that step of Ada's; the next run goes
//! on.
#![allow(clippy::disallowed_methods, reason = "a live program")]
#![allow(unreachable_pub, reason = "in a program `pub` only says that other modules use it")]

mod booking;

use std::error::Error;
use std::time::Duration;

use dlock::{AnyBackend, Handle, Lock, LockKey, Options, TokioRuntime};
use fence::{Entry, Fencing, NextStep, OwnerToken, Proof, ResourceKey, Stop};
use sqlx::PgPool;

use crate::booking::{POLICY, Record, Seat, Shop, book};

/// The tables of the shop. The bank has a connection of its own, so no transaction spans both.
const SHOP: &str = "
    CREATE TABLE IF NOT EXISTS seats (seat text PRIMARY KEY, passenger text NOT NULL);
    CREATE TABLE IF NOT EXISTS bookings (buyer text PRIMARY KEY, record text NOT NULL);";
const BANK: &str = "
    CREATE SCHEMA IF NOT EXISTS bank;
    CREATE TABLE IF NOT EXISTS bank.payments (
      booking text PRIMARY KEY, state text NOT NULL, charges int NOT NULL, refunds int NOT NULL);";

const FIND: &str = "SELECT record FROM bookings WHERE buyer = $1";
const RECORD: &str =
    "INSERT INTO bookings VALUES ($1, $2) ON CONFLICT (buyer) DO UPDATE SET record = excluded.record";
const BOOK: &str = "INSERT INTO seats VALUES ('12A', $1) ON CONFLICT DO NOTHING";
/// The mistake of `lock-only`: it relies on the lock to keep others out.
const OVERWRITE: &str =
    "INSERT INTO seats VALUES ('12A', $1) ON CONFLICT (seat) DO UPDATE SET passenger = excluded.passenger";
const NEWER: &str = "SELECT FROM fence_position WHERE resource_id = $1 AND token > $2";
const PASSENGER: &str = "SELECT passenger FROM seats WHERE seat = '12A'";

/// The key of both is the booking. A refund that comes first makes a late charge harmless.
const CHARGE: &str = "INSERT INTO bank.payments VALUES ($1, 'charged', 1, 0) ON CONFLICT DO NOTHING";
const REFUND: &str = "INSERT INTO bank.payments AS p VALUES ($1, 'cancelled', 0, 0) \
     ON CONFLICT (booking) DO UPDATE SET state = 'refunded', refunds = p.refunds + 1 \
     WHERE p.state = 'charged'";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let postgres = arguments.next().unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let redis = arguments.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let fencing = if arguments.next().as_deref() == Some("lock-only") { Fencing::Off } else { Fencing::On };
    let (shop, bank) = (PgPool::connect(&postgres).await?, PgPool::connect(&postgres).await?);
    fence::migrate(&shop).await?;
    sqlx::raw_sql(SHOP).execute(&shop).await?;
    sqlx::raw_sql(BANK).execute(&bank).await?;
    let lock = Lock::connect(&redis, Options::new(Duration::from_millis(300))).await?;

    let ada = Buyer { name: "Ada", killed_at: arguments.next(), fencing, shop, bank, lock };
    let bob = Buyer { name: "Bob", killed_at: None, ..ada.clone() };
    let bobs = async {
        // Ada pays first.
        ada.await_row("SELECT FROM bank.payments WHERE booking = 'Ada'").await?;
        book(&bob).await
    };
    let (ada_has, bob_has) = tokio::try_join!(book(&ada), bobs)?;
    for (buyer, end) in [(&ada, ada_has), (&bob, bob_has)] {
        let count = "SELECT charges, refunds FROM bank.payments WHERE booking = $1";
        let (charges, refunds): (i32, i32) =
            sqlx::query_as(count).bind(buyer.name).fetch_one(&buyer.bank).await?;
        println!("{}: {}; charges: {charges}, refunds: {refunds}", buyer.name, end.as_str());
    }
    let passenger: String = sqlx::query_scalar(PASSENGER).fetch_one(&ada.shop).await?;
    println!("seat 12A is {passenger}'s");
    Ok(())
}

#[derive(Clone)]
struct Buyer {
    name: &'static str,
    killed_at: Option<String>,
    fencing: Fencing,
    shop: PgPool,
    bank: PgPool,
    lock: Lock<AnyBackend<TokioRuntime>>,
}

type Lease = Handle<AnyBackend<TokioRuntime>>;

impl Buyer {
    /// Waits until `query` finds a row.
    async fn await_row(&self, query: &'static str) -> Result<(), Failure> {
        while sqlx::query(query).fetch_optional(&self.shop).await?.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Writes the seat and the record in one transaction, which the fence checks first.
    async fn take_fenced(&self, lease: &Lease) -> Result<NextStep, Failure> {
        let key = ResourceKey::try_from(lease.key())?;
        let owner = OwnerToken::try_from(lease.owner())?;
        let payload = serde_json::json!({ "for": self.name });
        let entry = Entry::new(lease.fence()).owner(&owner).payload(payload);
        match self.transaction(&key, entry).await {
            Ok(next) => Ok(next),
            Err(stop) => match stop.next_step(POLICY) {
                NextStep::Repair => Err(stop.into()),
                next => Ok(next),
            },
        }
    }

    async fn transaction(&self, key: &ResourceKey, entry: Entry) -> Result<NextStep, Stop<sqlx::Error>> {
        let mut transaction = self.shop.begin().await?;
        fence::check(&mut transaction, key, entry).await?;
        let booked = sqlx::query(BOOK).bind(self.name).execute(&mut *transaction).await?;
        if booked.rows_affected() == 0 {
            // The dropped transaction takes the fence back.
            return Ok(POLICY.after(Proof::Superseded));
        }
        let record = sqlx::query(RECORD).bind(self.name).bind(Record::Booked.as_str());
        record.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(NextStep::Done)
    }
}

impl Shop for Buyer {
    type Lease = Lease;
    type Error = Failure;

    async fn last_record(&self) -> Result<Option<Record>, Failure> {
        let last: Option<String> =
            sqlx::query_scalar(FIND).bind(self.name).fetch_optional(&self.shop).await?;
        Ok(last.and_then(|last| Record::ALL.into_iter().find(|record| record.as_str() == last)))
    }

    async fn record(&self, record: Record) -> Result<(), Failure> {
        sqlx::query(RECORD).bind(self.name).bind(record.as_str()).execute(&self.shop).await?;
        Ok(())
    }

    async fn acquire(&self) -> Result<Lease, Failure> {
        let key = LockKey::new("seats", "12A")?;
        Ok(self.lock.acquire(&key, self.lock.deadline_in(Duration::from_secs(60))).await?)
    }

    async fn look(&self, lease: &Lease) -> Result<Seat, Failure> {
        // Claims nothing: the transaction of `take` decides, and waits for an unanswered one that still runs.
        let key = ResourceKey::try_from(lease.key())?;
        let newer = sqlx::query(NEWER).bind(key.as_str()).bind(fence::bigint(lease.fence())?);
        if newer.fetch_optional(&self.shop).await?.is_some() {
            return Ok(Seat::Stale);
        }
        let passenger: Option<String> = sqlx::query_scalar(PASSENGER).fetch_optional(&self.shop).await?;
        Ok(match passenger.as_deref() {
            None => Seat::Free,
            Some(passenger) if passenger == self.name => Seat::Mine,
            Some(_) => Seat::Taken,
        })
    }

    async fn pay(&self) -> Result<(), Failure> {
        sqlx::query(CHARGE).bind(self.name).execute(&self.bank).await?;
        if self.name == "Ada" {
            // Her bank answers late: her lease ends, and Bob books the seat.
            self.await_row("SELECT FROM bookings WHERE buyer = 'Bob' AND record = 'booked'").await?;
        }
        Ok(())
    }

    async fn take(&self, lease: &Lease) -> Result<NextStep, Failure> {
        if self.fencing == Fencing::On {
            return self.take_fenced(lease).await;
        }
        sqlx::query(OVERWRITE).bind(self.name).execute(&self.shop).await?;
        Ok(NextStep::Done)
    }

    async fn refund(&self) -> Result<(), Failure> {
        sqlx::query(REFUND).bind(self.name).execute(&self.bank).await?;
        Ok(())
    }

    async fn release(&self, lease: Lease) {
        // The TTL releases it otherwise.
        let _ = lease.release().await;
    }

    fn step(&self, name: &str) {
        if self.killed_at.as_deref() == Some(name) {
            // Ends the process as SIGKILL does: nothing is cleaned up.
            std::process::abort();
        }
    }
}
