//! The check on the transactions of `sqlx` with MySQL or MariaDB.
//!
//! MySQL has no statement that raises a row and says what it did, so the check locks the row, reads it, lets
//! the rule decide, and writes. The order of the steps matters:
//!
//! - `INSERT … ON DUPLICATE KEY UPDATE` locks the row, also one that does not exist yet. A `SELECT … FOR
//!   UPDATE` of a missing row would lock a gap, which two first writers share: each would wait for the other.
//! - A plain `SELECT` reads the transaction's snapshot. Under REPEATABLE READ, the default, the snapshot is
//!   that of the first plain `SELECT`: if the caller has read nothing before, it is this one, and shows the
//!   row that is locked. An older snapshot shows an older row, and would show the caller older rows of its
//!   own, too: then the condition of the `UPDATE`, which compares with the locked row, fails.
//! - A refusal is final only by the locked row.

mod migrate;

use sqlx::mysql::{MySql, MySqlRow};
use sqlx::{Error, Row as _, Transaction};

pub use self::migrate::MYSQL_MIGRATIONS;
use super::{Entry, Receipt, ResourceKey, Row, Stop, UserTransaction, judge};
use crate::WriteSeq;

/// Fails with [`NO_SAVEPOINT`] if no transaction is open: a savepoint then ends with its statement.
const IS_OPEN: &str = "SAVEPOINT fencepost_fence; RELEASE SAVEPOINT fencepost_fence";
/// `ER_SP_DOES_NOT_EXIST`.
const NO_SAVEPOINT: u16 = 1305;

/// Locks the row of a key. A new one has version 0, and does not outlive this transaction.
const LOCK: &str = "INSERT INTO fence_position (resource_id, token, seq, owner, sha256, version) \
                    VALUES (?, 0, 0, NULL, '', 0) ON DUPLICATE KEY UPDATE version = version";

const READ: &str = "SELECT token, seq, owner, sha256, version FROM fence_position WHERE resource_id = ?";
const READ_LOCKED: &str =
    "SELECT token, seq, owner, sha256, version FROM fence_position WHERE resource_id = ? FOR UPDATE";

const RAISE: &str = "UPDATE fence_position SET token = ?, seq = ?, owner = ?, sha256 = ?, version = ? \
                     WHERE resource_id = ? AND version = ?";
const RECORD: &str = "INSERT INTO fence_audit (resource_id, version, token, seq, owner_prefix, payload) \
                      VALUES (?, ?, ?, ?, ?, ?)";

/// Rolls back, then opens a transaction that can write nothing, which the caller's commit or rollback ends.
/// After a rollback alone, each further statement of the caller would be a transaction of its own. One
/// packet, so that a cancelled caller can't stop between the two.
const ABORT: &str = "ROLLBACK AND NO CHAIN NO RELEASE; START TRANSACTION READ ONLY";
/// Ends the session, if it can't be rolled back.
const KILL: &str = "KILL CONNECTION_ID()";

impl UserTransaction for Transaction<'_, MySql> {
    type Error = Error;

    async fn judge(&mut self, key: &ResourceKey, entry: &Entry) -> Result<Receipt, Stop<Error>> {
        require_open(self).await?;
        sqlx::query(LOCK).bind(key.as_str().as_bytes()).execute(&mut **self).await?;
        if let Some(row) = read(self, READ, key).await?
            && let Ok(receipt) = judge_row(row, entry)
            && raise(self, key, entry, receipt).await?
        {
            record(self, key, entry, receipt).await?;
            return Ok(receipt);
        }
        let row = read(self, READ_LOCKED, key).await?;
        judge_row(row.ok_or(Stop::Corrupt("the row of a resource is gone"))?, entry)?;
        Err(Stop::Retry(Error::Protocol(
            "this transaction has read before the check, and a newer write is not in its snapshot".to_owned(),
        )))
    }

    async fn abort(&mut self) {
        if sqlx::raw_sql(ABORT).execute(&mut **self).await.is_err() {
            let _ = sqlx::raw_sql(KILL).execute(&mut **self).await;
        }
    }
}

/// Returns an error if no transaction is open, although sqlx believes so.
async fn require_open(transaction: &mut Transaction<'_, MySql>) -> Result<(), Stop<Error>> {
    let Err(error) = sqlx::raw_sql(IS_OPEN).execute(&mut **transaction).await else { return Ok(()) };
    let number = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>())
        .map(sqlx::mysql::MySqlDatabaseError::number);
    Err(match number {
        Some(NO_SAVEPOINT) => Stop::Failed(Error::Protocol(
            "no transaction is open: a statement such as CREATE TABLE has committed it; run that before the \
             transaction"
                .to_owned(),
        )),
        _ => error.into(),
    })
}

async fn read(
    transaction: &mut Transaction<'_, MySql>,
    query: &'static str,
    key: &ResourceKey,
) -> Result<Option<Row>, Stop<Error>> {
    let row = sqlx::query(query).bind(key.as_str().as_bytes()).fetch_optional(&mut **transaction).await?;
    row.as_ref().map(load).transpose()
}

fn load(row: &MySqlRow) -> Result<Row, Stop<Error>> {
    let owner: Option<Vec<u8>> = row.try_get(2)?;
    let owner = owner.map(String::from_utf8).transpose();
    Ok(Row {
        token: row.try_get(0)?,
        seq: row.try_get(1)?,
        owner: owner.map_err(|_| Stop::Corrupt("an owner token is no text"))?,
        sha256: row.try_get(3)?,
        version: row.try_get(4)?,
    })
}

/// Judges a write against a row; one of version 0 is this transaction's own, and holds nothing.
fn judge_row(row: Row, entry: &Entry) -> Result<Receipt, Stop<Error>> {
    judge((row.version > 0).then_some(row), entry)
}

/// Raises the row to the position of a write; returns false if the row is not the one that was judged.
async fn raise(
    transaction: &mut Transaction<'_, MySql>,
    key: &ResourceKey,
    entry: &Entry,
    receipt: Receipt,
) -> Result<bool, Error> {
    let raise = sqlx::query(RAISE)
        .bind(entry.token.as_u64())
        .bind(seq(entry))
        .bind(entry.owner.as_ref().map(|owner| owner.as_str().as_bytes()))
        .bind(entry.digest().as_bytes().as_slice().to_vec())
        .bind(receipt.version)
        .bind(key.as_str().as_bytes())
        .bind(receipt.version - 1);
    Ok(raise.execute(&mut **transaction).await?.rows_affected() == 1)
}

/// Writes the audit row.
async fn record(
    transaction: &mut Transaction<'_, MySql>,
    key: &ResourceKey,
    entry: &Entry,
    receipt: Receipt,
) -> Result<(), Error> {
    let record = sqlx::query(RECORD)
        .bind(key.as_str().as_bytes())
        .bind(receipt.version)
        .bind(entry.token.as_u64())
        .bind(seq(entry))
        .bind(entry.owner.as_ref().map(|owner| owner.prefix()))
        .bind(entry.payload_text());
    record.execute(&mut **transaction).await.map(drop)
}

/// Returns the number of the write within its token; the plain write has the largest.
fn seq(entry: &Entry) -> u64 {
    entry.seq.map_or(u64::MAX, WriteSeq::as_u64)
}
