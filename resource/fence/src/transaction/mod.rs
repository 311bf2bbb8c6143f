//! The check inside a transaction of the user: fence, audit row and the user's own rows commit together.
//!
//! The row of the fence is locked before it is compared, and stays locked until the transaction ends. So two
//! writers of one resource follow each other, and the second one is judged by the position of the first. A
//! transaction with a snapshot that is older than the row gets [`Stop::Retry`]. `postgres` does all of it in
//! one statement; `mysql` locks the row, and lets the rule decide.
//!
//! Source: Palma, "Distributed locks and fencing tokens: why TTL alone is not enough", `writeWithFence`. The
//! article's condition is one of the rule's; a test compares the check with [`Fence::write`].

mod entry;
mod migrate;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
mod postgres;
mod row;
#[cfg(any(feature = "sqlx", feature = "mysql"))]
mod sqlx;
mod stop;

use std::future::Future;

pub use self::entry::Entry;
pub use self::migrate::{Connection, migrate};
#[cfg(feature = "mysql")]
pub use self::mysql::MYSQL_MIGRATIONS;
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub use self::postgres::{CHECK, MIGRATIONS, PostgresTransaction, begin_tick, claim_ticks, finish_tick};
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub use self::postgres::{Failed, Job, JobQueue, JobStop};
#[cfg(feature = "tokio-postgres")]
pub use self::postgres::{PostgresTicks, TickStatements};
use self::row::Row;
pub use self::stop::{Retryable, Stop};
use crate::ResourceKey;
use crate::rule::{Fence, Receipt};

/// A transaction of a client: `tokio_postgres::Transaction`, or `sqlx::Transaction` on PostgreSQL, MySQL or
/// MariaDB. A bare connection is none: there the check would commit alone.
pub trait UserTransaction: Send {
    /// The client's error.
    type Error: Retryable;

    /// Judges a write, and records it if it is accepted.
    #[doc(hidden)]
    fn judge(
        &mut self,
        key: &ResourceKey,
        entry: &Entry,
    ) -> impl Future<Output = Result<Receipt, Stop<Self::Error>>> + Send;

    /// Rolls the transaction back, as far as the database can, and keeps further statements from being
    /// committed. Ignores errors: a connection that is lost takes the transaction with it.
    #[doc(hidden)]
    fn abort(&mut self) -> impl Future<Output = ()> + Send;
}

/// Checks the fence of `key` in the caller's transaction: raises it to the token of `entry`, writes the audit
/// row, and locks both until the transaction ends. Takes one round trip on PostgreSQL if the write is
/// accepted, and five on MySQL.
///
/// Call it before your own statements, and let `?` leave the function: the transaction is dropped, and so
/// rolled back. Every reason not to run the statements is an error, also a write that was applied before:
/// a caller that reads nothing but `?` never writes late and never writes twice. A caller that ignores the
/// error commits nothing either: the server refuses to write for it, and its commit does nothing.
///
/// It is for a mutex: the rows keep the highest token alone, and a token below it is stale. The permits of a
/// semaphore, of which several are live at once, would refuse one another. Guard them by
/// [`Fence::write_beside`](crate::Fence::write_beside) instead.
///
/// On MySQL and MariaDB:
///
/// - That holds until a statement that commits implicitly, such as `CREATE TABLE`. Within an accepted
///   transaction such a statement commits the check, and leaves the rest to commit alone.
/// - A deadlock (1213) of one of your own statements has rolled back all of the transaction, the check
///   included: let `?` leave the function there, too, or the next statement commits alone.
/// - A refusal within a savepoint, which is a nested transaction of sqlx, rolls back the outer transaction,
///   too.
/// - A transaction that has read before the check may get [`Stop::Retry`], for its snapshot is older than the
///   fence.
///
/// Drop the transaction, too, if you drop the future of this function before its end: it has decided nothing.
///
/// # Errors
///
/// [`Stop`] says why the caller's statements must not run, and what to do.
#[cfg_attr(feature = "tokio-postgres", doc = include_str!("../../doc/check.md"))]
#[cfg_attr(feature = "mysql", doc = include_str!("../../doc/check-mysql.md"))]
pub async fn check<T: UserTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: impl Into<Entry> + Send,
) -> Result<Receipt, Stop<T::Error>> {
    let outcome = transaction.judge(key, &entry.into()).await;
    if outcome.is_err() {
        transaction.abort().await;
    }
    outcome
}

/// Judges a write by the rule, against `row`, or as the first one of its key.
fn judge<E>(row: Option<Row>, entry: &Entry) -> Result<Receipt, Stop<E>> {
    let mut fence = match row {
        Some(row) => row.into_fence().map_err(Stop::Corrupt)?,
        None => Fence::default(),
    };
    entry.judge(&mut fence)
}
