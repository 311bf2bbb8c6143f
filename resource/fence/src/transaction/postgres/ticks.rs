//! The ticks of a cron in transactions of the user: each is a check of the fence, and one statement on
//! `cron_tick`.

use std::future::Future;

use super::super::{UserTransaction, check};
use super::{Entry, Receipt, ResourceKey, Retryable, Stop};
use crate::cron::{Seen, Tick};
use crate::{TooLarge, bigint};

const CLAIM: &str = include_str!("claim_ticks.sql");
const BEGIN: &str = include_str!("begin_tick.sql");
const FINISH: &str = include_str!("finish_tick.sql");

/// The parameters of a statement on one tick.
#[derive(Debug)]
#[doc(hidden)]
pub struct TickParameters {
    pub(super) key: String,
    pub(super) tick: i64,
    pub(super) token: i64,
    pub(super) owner_prefix: Option<String>,
}

/// A transaction on PostgreSQL: `tokio_postgres::Transaction`, or `sqlx::Transaction` on PostgreSQL.
pub trait PostgresTransaction: UserTransaction {
    /// Returns the last tick that is done and the server's clock, by a statement on the key.
    #[doc(hidden)]
    fn last_tick(
        &mut self,
        statement: &'static str,
        key: &str,
    ) -> impl Future<Output = Result<(Option<i64>, i64), Self::Error>> + Send;

    /// Runs a statement on a tick; returns the attempts, or `None` if the tick is done.
    #[doc(hidden)]
    fn on_tick(
        &mut self,
        statement: &'static str,
        parameters: &TickParameters,
    ) -> impl Future<Output = Result<Option<i64>, Self::Error>> + Send;

    /// Runs a statement on jobs, whose one parameter is a text of JSON; returns the text of its row, if there
    /// is one.
    #[doc(hidden)]
    fn json(
        &mut self,
        statement: &'static str,
        parameters: &str,
    ) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;
}

/// Claims a cron for the grant of `entry`, and returns the last tick that is done with the server's clock. It
/// checks the fence as [`check`] does: from the commit of the transaction on, every lower token is refused.
///
/// Number the entries of one grant, this one first: [`Entry::seq`].
///
/// # Errors
///
/// As [`check`].
pub async fn claim_ticks<T: PostgresTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: impl Into<Entry> + Send,
) -> Result<Seen, Stop<T::Error>> {
    check(transaction, key, entry).await?;
    seen_ticks(transaction, key).await
}

/// Returns the last tick that is done, with the server's clock.
pub(super) async fn seen_ticks<T: PostgresTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
) -> Result<Seen, Stop<T::Error>> {
    let (last, now_ms) = transaction.last_tick(CLAIM, key.as_str()).await?;
    let positive = |number: i64| u64::try_from(number).map_err(|_| Stop::Corrupt("a tick is negative"));
    let last = last.map(positive).transpose()?.map(Tick::new);
    Ok(Seen { last, now_ms: u64::try_from(now_ms).ok() })
}

/// Marks a tick as running for the grant of `entry`, so that operators see who runs it. Returns the number of
/// attempts: above 1, the tick is taken over from a runner with a lower token, which has crashed or is too
/// slow. It checks the fence as [`check`] does. A cron may go without it, since [`finish_tick`] alone
/// decides.
///
/// # Errors
///
/// As [`check`], and [`Stop::Repeated`] if the tick is done, or if this very entry has begun it before, whose
/// answer was lost.
pub async fn begin_tick<T: PostgresTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: impl Into<Entry> + Send,
    tick: Tick,
) -> Result<u64, Stop<T::Error>> {
    run(transaction, key, entry.into(), tick, BEGIN).await
}

/// Makes a tick done in the caller's transaction: its statements and the tick commit together, with the token
/// of `entry`, or neither does. Call it before your own statements, and let `?` leave the function, as with
/// [`check`]. Returns the number of attempts.
///
/// # Errors
///
/// As [`check`]: [`Stop::Refused`] if a newer holder has been there. [`Stop::Repeated`] if the tick is done,
/// by this runner or another one: the statements must not run again.
#[cfg_attr(feature = "tokio-postgres", doc = include_str!("../../../doc/finish-tick.md"))]
pub async fn finish_tick<T: PostgresTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: impl Into<Entry> + Send,
    tick: Tick,
) -> Result<u64, Stop<T::Error>> {
    run(transaction, key, entry.into(), tick, FINISH).await
}

async fn run<T: PostgresTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: Entry,
    tick: Tick,
    statement: &'static str,
) -> Result<u64, Stop<T::Error>> {
    let parameters = parameters(key, &entry, tick).map_err(Stop::TooLarge)?;
    let receipt = check(transaction, key, entry).await?;
    let outcome = on_tick(transaction, statement, &parameters, receipt).await;
    if outcome.is_err() {
        transaction.abort().await;
    }
    outcome
}

async fn on_tick<T: PostgresTransaction>(
    transaction: &mut T,
    statement: &'static str,
    parameters: &TickParameters,
    receipt: Receipt,
) -> Result<u64, Stop<T::Error>>
where
    T::Error: Retryable,
{
    match transaction.on_tick(statement, parameters).await? {
        Some(attempts) => u64::try_from(attempts).map_err(|_| Stop::Corrupt("attempts are negative")),
        None => Err(Stop::Repeated(receipt)),
    }
}

fn parameters(key: &ResourceKey, entry: &Entry, tick: Tick) -> Result<TickParameters, TooLarge> {
    let number = tick.as_u64();
    Ok(TickParameters {
        key: key.as_str().to_owned(),
        tick: i64::try_from(number).map_err(|_| TooLarge { what: "tick", number })?,
        token: bigint(entry.token)?,
        owner_prefix: entry.owner.as_ref().map(|owner| owner.prefix().to_owned()),
    })
}
