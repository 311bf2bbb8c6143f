//! A booking with payment and refund, as a program over an interface: [`Shop`] is PostgreSQL in the example
//! `seat_refund`, and the simulated world in the laboratory's test `seat_booking`.
//!
//! A buyer pays while it holds the lock of a seat, and may lose the lease meanwhile. If the seat is then
//! refused, the payment is to be undone: the booking records durably that a refund is due, before it asks for
//! the refund, and the refund has the booking's key. So a crash at any step leads to exactly one refund.

use std::future::Future;

use fence::{NextStep, Policy, Proof};

/// The last durable record of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The booking exists. Its payment may have been asked for.
    Begun,
    /// It is paid.
    Paid,
    /// It has the seat: an end.
    Booked,
    /// It does not have the seat and never will. A payment is to be returned.
    RefundDue,
    /// The payment is returned, or was never made: an end.
    Refunded,
}

/// The seat, as the holder of a lease sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    Free,
    /// An earlier attempt of this booking has it.
    Mine,
    Taken,
    /// The lease is gone: a later holder was there.
    Stale,
}

/// The surroundings of one booking. Each call returns once its effect is known.
pub trait Shop: Sync {
    type Lease: Send + Sync;
    type Error: Send;

    /// Returns the last durable record; `None` if the booking is new.
    fn last_record(&self) -> impl Future<Output = Result<Option<Record>, Self::Error>> + Send;

    /// Writes a record durably.
    fn record(&self, record: Record) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Acquires the lock of the seat.
    fn acquire(&self) -> impl Future<Output = Result<Self::Lease, Self::Error>> + Send;

    /// Reads the seat under the lease. If `take` can't find out what an unanswered write of an earlier lease
    /// has done, this must: a claim of the lease's token makes such a write visible, or refuses it for ever.
    fn look(&self, lease: &Self::Lease) -> impl Future<Output = Result<Seat, Self::Error>> + Send;

    /// Pays, once for a booking.
    fn pay(&self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Writes the buyer into the seat, with the token of the lease.
    fn take(&self, lease: &Self::Lease) -> impl Future<Output = Result<NextStep, Self::Error>> + Send;

    /// Returns the payment of the booking, if it was made; cancels it otherwise.
    fn refund(&self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Releases the lock, or leaves it to its TTL.
    fn release(&self, lease: Self::Lease) -> impl Future<Output = ()> + Send;

    /// Passes a step, at which a test may end the program.
    fn step(&self, name: &str);
}

/// The payment is an effect outside of the seat, and is not repeated by another attempt.
pub const POLICY: Policy = Policy { has_outside_effects: true, may_begin_anew: true };

impl Record {
    pub const ALL: [Self; 5] = [Self::Begun, Self::Paid, Self::Booked, Self::RefundDue, Self::Refunded];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Paid => "paid",
            Self::Booked => "booked",
            Self::RefundDue => "refund due",
            Self::Refunded => "refunded",
        }
    }
}

/// Carries a booking to its end, from its last record on; returns the record of its end.
pub async fn book<S: Shop>(shop: &S) -> Result<Record, S::Error> {
    let mut record = match shop.last_record().await? {
        Some(record) => record,
        None => enter(shop, Record::Begun).await?,
    };
    loop {
        record = match record {
            Record::Begun | Record::Paid => attempt(shop, record).await?,
            Record::RefundDue => {
                shop.refund().await?;
                shop.step("refund answered");
                enter(shop, Record::Refunded).await?
            }
            Record::Booked | Record::Refunded => return Ok(record),
        };
    }
}

/// Tries to get the seat under one lease; returns the next record, which may be the old one.
async fn attempt<S: Shop>(shop: &S, mut record: Record) -> Result<Record, S::Error> {
    let lease = shop.acquire().await?;
    let next = match shop.look(&lease).await? {
        Seat::Mine => NextStep::Done,
        Seat::Taken => POLICY.after(Proof::Superseded),
        Seat::Stale => POLICY.after(Proof::Stale),
        Seat::Free => {
            if record == Record::Begun {
                shop.pay().await?;
                shop.step("payment answered");
                record = enter(shop, Record::Paid).await?;
            }
            shop.take(&lease).await?
        }
    };
    shop.step("seat answered");
    match next {
        NextStep::Done => record = enter(shop, Record::Booked).await?,
        NextStep::Compensate | NextStep::Stop => record = enter(shop, Record::RefundDue).await?,
        // Begins anew: the read under the next lease finds out what an unanswered write has done.
        _ => {}
    }
    shop.release(lease).await;
    Ok(record)
}

async fn enter<S: Shop>(shop: &S, record: Record) -> Result<Record, S::Error> {
    shop.record(record).await?;
    shop.step(&format!("{} recorded", record.as_str()));
    Ok(record)
}
