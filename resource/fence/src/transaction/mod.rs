//! The check inside a transaction of the user: fence, audit row and the user's own rows commit together.
//!
//! One statement inserts or raises the fence's row and writes the audit row. PostgreSQL locks the row before
//! it compares, also under READ COMMITTED, and keeps it locked until the transaction ends. So two writers of
//! one resource follow each other, and the second one is judged by the position of the first. Under
//! REPEATABLE READ and SERIALIZABLE the second one fails with 40001 instead: [`Stop::Retry`].
//!
//! Source: Palma, "Distributed locks and fencing tokens: why TTL alone is not enough", `writeWithFence`. The
//! article's condition is one of the rule's; a test compares the statement with [`Fence::write`].

mod entry;
mod migrate;
#[cfg(feature = "sqlx")]
mod sqlx;
mod stop;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;

use std::future::Future;

use dlock::FencingToken;

pub use self::entry::Entry;
use self::entry::Parameters;
pub use self::migrate::{Connection, MIGRATIONS, migrate};
pub use self::stop::{Retryable, Stop};
use crate::rule::{Fence, Fencing, Guard, LastWrite, Mark, Position, Receipt, WriteOutcome};
use crate::{BodyDigest, OwnerToken, ResourceKey};

/// The statement of [`check`], for programs on other clients. Its comment names the parameters; it returns
/// no row if the write may not pass.
pub const CHECK: &str = include_str!("check.sql");

/// Reads the fence after a check that may not pass. The row is locked by then.
const FIND: &str = "SELECT token, seq, owner, sha256, version FROM fence_position WHERE resource_id = $1";

/// Fails on purpose. PostgreSQL then refuses every further statement of the transaction, and answers its
/// commit by a rollback.
const ABORT: &str = "DO $$ BEGIN RAISE EXCEPTION 'the fence refused this transaction'; END $$";

/// A transaction of a PostgreSQL client: that of `tokio-postgres` or of `sqlx`. A bare connection is none:
/// there the check would commit alone.
pub trait UserTransaction: Send {
    /// The client's error.
    type Error: Retryable;

    /// Runs [`CHECK`]; returns the version, or `None` if the write may not pass.
    #[doc(hidden)]
    fn accept(
        &mut self,
        parameters: &Parameters,
    ) -> impl Future<Output = Result<Option<i64>, Self::Error>> + Send;

    /// Reads the row of a resource.
    #[doc(hidden)]
    fn find(&mut self, key: &str) -> impl Future<Output = Result<Option<Row>, Self::Error>> + Send;

    /// Runs a script that fails; ignores its error.
    #[doc(hidden)]
    fn abort(&mut self, script: &'static str) -> impl Future<Output = ()> + Send;
}

/// A row of `fence_position`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Row {
    token: i64,
    seq: i64,
    owner: Option<String>,
    sha256: Vec<u8>,
    version: i64,
}

/// Checks the fence of `key` in the caller's transaction: raises it to the token of `entry`, writes the audit
/// row, and locks both until the transaction ends. Takes one round trip if the write is accepted.
///
/// Call it before your own statements, and let `?` leave the function: the transaction is dropped, and so
/// rolled back. Every reason not to run the statements is an error, also a write that was applied before:
/// a caller that reads nothing but `?` never writes late and never writes twice. A caller that ignores the
/// error commits nothing either: the transaction is aborted, so the server refuses its statements, and its
/// commit rolls back.
///
/// # Errors
///
/// [`Stop`] says why the caller's statements must not run, and what to do.
#[cfg_attr(feature = "tokio-postgres", doc = include_str!("../../doc/check.md"))]
pub async fn check<T: UserTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: impl Into<Entry> + Send,
) -> Result<Receipt, Stop<T::Error>> {
    let outcome = judge(transaction, key, &entry.into()).await;
    if outcome.is_err() {
        transaction.abort(ABORT).await;
    }
    outcome
}

async fn judge<T: UserTransaction>(
    transaction: &mut T,
    key: &ResourceKey,
    entry: &Entry,
) -> Result<Receipt, Stop<T::Error>> {
    let parameters = Parameters::new(key, entry).map_err(Stop::TooLarge)?;
    if let Some(version) = transaction.accept(&parameters).await? {
        let version = u64::try_from(version).map_err(|_| Stop::Corrupt("a version is negative"))?;
        return Ok(Receipt { version, max_fence: Some(entry.token) });
    }
    let row = transaction.find(key.as_str()).await?;
    let row = row.ok_or(Stop::Corrupt("the row of a resource is gone: rows must not be deleted"))?;
    let mut fence = load(row).map_err(Stop::Corrupt)?;
    // The statement has refused it; the rule knows why.
    let guard = Guard::Token { token: entry.token, seq: entry.seq };
    match fence.write(guard, entry.owner.as_ref(), parameters.digest, Fencing::On) {
        WriteOutcome::Refused(refusal) => Err(Stop::Refused(refusal)),
        WriteOutcome::Repeated(receipt) => Err(Stop::Repeated(receipt)),
        WriteOutcome::Accepted(_) => Err(Stop::Corrupt("the statement refused a write that may pass")),
    }
}

/// Returns the fence of a row. Each accepted write raised it, so its highest position is the last write's.
fn load(row: Row) -> Result<Fence, &'static str> {
    let token = u64::try_from(row.token).ok().and_then(FencingToken::new);
    let token = token.ok_or("a token is not positive")?;
    let number = if row.seq == i64::MAX { u64::MAX } else { row.seq.try_into().unwrap_or(0) };
    let guard = Guard::from_parts(token.as_u64(), number).ok_or("a sequence number is not positive")?;
    let owner = row.owner.as_deref().map(OwnerToken::new).transpose();
    let owner = owner.map_err(|_| "an owner token is no text")?;
    let digest: [u8; 32] = row.sha256.try_into().map_err(|_| "a digest has not 32 bytes")?;
    let version = u64::try_from(row.version).map_err(|_| "a version is negative")?;
    Ok(Fence {
        highest: Some(Mark { position: Position::from_parts(token, number), owner: owner.clone() }),
        last_write: Some(LastWrite { guard, owner, digest: BodyDigest::from_bytes(digest) }),
        version,
    })
}
