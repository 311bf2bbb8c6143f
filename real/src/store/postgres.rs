//! A store in PostgreSQL: one transaction checks the fence, writes the value, and appends a line to the audit
//! log.
//!
//! The row of the resource is locked, judged by the rule of [`resource::fence`], and written before it is
//! unlocked. No other connection, of this process or another, can come between check and write. PostgreSQL
//! syncs its log before a commit returns, so an accepted token survives a crash.
//!
//! Source: Palma, "Distributed locks and fencing tokens: why TTL alone is not enough", "Wiring fencing into a
//! relational database". There the rule is a condition in SQL; here it is the library's own, which also knows
//! claims and retries.

use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Transaction};
use futures_util::future::join;
use resource::fence::{Beside, Fence, Fencing, LastWrite, Mark, WriteOutcome};
use resource::store::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use resource::{BodyDigest, MaxJump, ResourceKey, event};
use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use super::apart::apart;
use super::migrate::migrate;
use super::permits::permits_text;
use super::row::{COLUMNS, Parameters, load, snapshot};

/// The largest number of connections in the pool. A write occupies one until its commit is synced.
const CONNECTIONS_MAX: usize = 16;
/// The number of decisions that can be reported at a time; more than connections, so that keys rarely share a
/// gate.
const GATES: usize = 64;

/// Keeps values and fences in PostgreSQL. A clone shares the connections.
///
/// Decisions about a key are reported in their order by one service. Several services on one database are as
/// safe, but their reports may be out of order by some microseconds: the audit log has the order.
#[derive(Clone)]
pub struct PostgresStore(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) pool: Pool,
    /// Gates by the key's hash, locked from before a decision until its event is emitted: otherwise the next
    /// decision could be reported first.
    gates: Box<[Mutex<()>]>,
    max_jump: Option<MaxJump>,
}

/// Why no store is available at this URL.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is invalid. It may have a password, and so may the cause of its error: neither is shown.
    #[error("this is no URL of a PostgreSQL: {0}; give postgresql://user:password@host:port/database")]
    Url(tokio_postgres::Error),
    /// The connection failed.
    #[error("no connection to PostgreSQL: {0}; check that it is running and admits this user")]
    Connect(String),
    /// The tables could not be created.
    #[error("the tables could not be created: {0}; allow this user to create tables")]
    Migrate(String),
}

impl PostgresStore {
    /// Connects to the database at `url` (`postgresql://user@host:port/database`) and creates missing tables.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] says what to do.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        Self::connect_within(url, None).await
    }

    /// Connects as [`PostgresStore::connect`] does, and refuses tokens above `max_jump`, as long as fencing
    /// is on.
    ///
    /// # Errors
    ///
    /// As [`PostgresStore::connect`].
    pub async fn connect_within(url: &str, max_jump: Option<MaxJump>) -> Result<Self, ConnectError> {
        let config = Config::from_str(url).map_err(ConnectError::Url)?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config, NoTls, recycling);
        let pool = Pool::builder(manager).max_size(CONNECTIONS_MAX).build();
        let pool = pool.map_err(|error| ConnectError::Connect(error.to_string()))?;
        let mut client = pool.get().await.map_err(|error| {
            ConnectError::Connect(match &error {
                // The pool's own error lacks the cause.
                PoolError::Backend(error) => explain(error),
                other => explain(other),
            })
        })?;
        migrate(&mut client).await.map_err(|error| ConnectError::Migrate(explain(&error)))?;
        drop(client);
        let gates = std::iter::repeat_with(|| Mutex::new(())).take(GATES).collect();
        Ok(Self(Arc::new(Inner { pool, gates, max_jump })))
    }
}

impl Store for PostgresStore {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.write_beside(key, write, &Beside::NONE, fencing).await
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.read_beside(key, read, &Beside::NONE, fencing).await
    }

    async fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let (inner, key, write, beside) = (Arc::clone(&self.0), key.clone(), write.clone(), beside.clone());
        apart(async move { inner.write(&key, &write, &beside, fencing).await }).await
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let (inner, key, read, beside) = (Arc::clone(&self.0), key.clone(), read.clone(), beside.clone());
        apart(async move { inner.read(&key, &read, &beside, fencing).await }).await
    }
}

impl Inner {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let digest = BodyDigest::of(&write.body);
        let _gate = self.gate(key).lock().await;
        let mut client = self.pool.get().await.map_err(failed)?;
        let transaction = client.transaction().await.map_err(failed)?;
        let mut fence = load(&lock_row(&transaction, key).await?)?;
        let Write { guard, owner, .. } = write;
        let outcome =
            fence.write_beside_within(self.max_jump, *guard, beside, owner.as_ref(), digest, fencing);
        // A dropped transaction is rolled back.
        if matches!(outcome, WriteOutcome::Accepted(_)) {
            save(&transaction, key, &fence, Some(&write.body)).await?;
            transaction.commit().await.map_err(failed)?;
        }
        event::write_decided(key, write, digest, &outcome);
        Ok(outcome)
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let _gate = self.gate(key).lock().await;
        let mut client = self.pool.get().await.map_err(failed)?;
        let transaction = client.transaction().await.map_err(failed)?;
        let outcome = match read.mark() {
            None => ReadOutcome::Read(match find(&transaction, key, "").await? {
                None => Snapshot { value: None, version: 0, max_fence: None },
                Some(row) => snapshot(&row, &load(&row)?)?,
            }),
            Some(mark) => claim(&transaction, key, &mark, beside, self.max_jump, fencing).await?,
        };
        transaction.commit().await.map_err(failed)?;
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }

    pub(super) fn gate(&self, key: &ResourceKey) -> &Mutex<()> {
        let digest = BodyDigest::of(key.as_str().as_bytes());
        &self.gates[usize::from(digest.as_bytes()[0]) % GATES]
    }
}

async fn claim(
    transaction: &Transaction<'_>,
    key: &ResourceKey,
    mark: &Mark,
    beside: &Beside,
    max_jump: Option<MaxJump>,
    fencing: Fencing,
) -> Result<ReadOutcome, StoreError> {
    let row = lock_row(transaction, key).await?;
    let before = load(&row)?;
    let mut fence = before.clone();
    if let Err(refusal) = fence.claim_beside_within(max_jump, mark, beside, fencing) {
        return Ok(ReadOutcome::Refused(refusal));
    }
    if fence != before {
        save(transaction, key, &fence, None).await?;
    }
    Ok(ReadOutcome::Read(snapshot(&row, &fence)?))
}

/// Locks the row of `key` until the transaction ends; creates it if it does not exist.
pub(super) async fn lock_row(transaction: &Transaction<'_>, key: &ResourceKey) -> Result<Row, StoreError> {
    if let Some(row) = find(transaction, key, "FOR UPDATE").await? {
        return Ok(row);
    }
    let insert = "INSERT INTO resource_locks (resource_id) VALUES ($1) ON CONFLICT DO NOTHING";
    let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
    transaction.execute(&insert, &[&key.as_str()]).await.map_err(failed)?;
    // Ours, or that of a faster client: it exists by now, since rows are never deleted.
    let row = find(transaction, key, "FOR UPDATE").await?;
    row.ok_or(StoreError::Corrupt("the row of a key is gone: rows must not be deleted"))
}

async fn find(
    transaction: &Transaction<'_>,
    key: &ResourceKey,
    lock: &str,
) -> Result<Option<Row>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM resource_locks WHERE resource_id = $1 {lock}");
    let query = transaction.prepare_cached(&query).await.map_err(failed)?;
    transaction.query_opt(&query, &[&key.as_str()]).await.map_err(failed)
}

/// Writes the fence; for an accepted write also the value and its line in the audit log.
pub(super) async fn save(
    transaction: &Transaction<'_>,
    key: &ResourceKey,
    fence: &Fence,
    body: Option<&[u8]>,
) -> Result<(), StoreError> {
    let highest = Parameters::of_mark(fence.highest.as_ref());
    let update = "UPDATE resource_locks SET last_token = $2::text::numeric, last_seq = $3::text::numeric, \
                  last_owner = $4, permits = $5::text::jsonb WHERE resource_id = $1";
    let update = transaction.prepare_cached(update).await.map_err(failed)?;
    let permits = permits_text(fence);
    let parameters: [&(dyn ToSql + Sync); 5] =
        [&key.as_str(), &highest.token, &highest.seq, &highest.owner, &permits];
    transaction.execute(&update, &parameters).await.map_err(failed)?;
    match (body, &fence.last_write) {
        (Some(body), Some(last)) => {
            let version =
                i64::try_from(fence.version).map_err(|_| StoreError::Corrupt("too many versions"))?;
            save_value(transaction, key, body, last, version).await
        }
        _ => Ok(()),
    }
}

async fn save_value(
    transaction: &Transaction<'_>,
    key: &ResourceKey,
    body: &[u8],
    last: &LastWrite,
    version: i64,
) -> Result<(), StoreError> {
    let update = "UPDATE resource_locks SET written_token = $2::text::numeric, written_seq = \
         $3::text::numeric, written_owner = $4, written_sha256 = $5, version = $6, value = $7 WHERE \
         resource_id = $1";
    let insert = "INSERT INTO audit_log (resource_id, version, fencing_token, owner_prefix, payload) \
                  VALUES ($1, $2, nullif($3::text::numeric, 0), $4, $5)";
    let update = transaction.prepare_cached(update).await.map_err(failed)?;
    let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
    let written = Parameters::of_write(last);
    let (name, sha256) = (key.as_str(), last.digest.as_bytes().as_slice());
    let prefix = written.owner.as_deref().map(dlock::owner_prefix);
    let row: [&(dyn ToSql + Sync); 7] =
        [&name, &written.token, &written.seq, &written.owner, &sha256, &version, &body];
    let line: [&(dyn ToSql + Sync); 5] = [&name, &version, &written.token, &prefix, &body];
    // The server runs them in order; sending both at once saves a round trip.
    let (row, line) = join(transaction.execute(&update, &row), transaction.execute(&insert, &line)).await;
    row.and(line).map(drop).map_err(failed)
}

pub(super) fn failed(error: impl Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(explain(&error).into())
}

/// Formats the error with its causes, where PostgreSQL's message is. A cause repeated by its error is
/// omitted.
fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        if !text.ends_with(&own) {
            text = format!("{text}: {own}");
        }
        cause = error.source();
    }
    text
}
