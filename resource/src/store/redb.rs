//! A store on a disk: a redb database, on a file or on any [`StorageBackend`].

// The permits beside the highest token of a key.
mod permits;

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use dlock::FencingToken;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition, TableError,
    WriteTransaction,
};

use super::{CHANGES_MAX, FenceAdmin, FenceChange, SetOutcome};
use super::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use crate::BodyDigest;
use crate::OwnerToken;
use crate::ResourceKey;
use crate::event;
use crate::fence::{Beside, Fence, Fencing, Guard, LastWrite, Mark, MaxJump, Position, WriteOutcome};

/// A mark: token, sequence, owner.
type MarkRow<'a> = (u64, u64, Option<&'a str>);
/// A fence: version, the highest mark, the last write and the SHA-256 of its body. The mark of the last write
/// contains the numbers of [`Guard::to_parts`].
type FenceRow<'a> = (u64, Option<MarkRow<'a>>, Option<(MarkRow<'a>, &'a [u8; 32])>);

type ChangeRow<'a> = (u64, u64, u64, &'a str, &'a str);

/// In a table of their own, so that a claim does not write the value again.
const FENCES: TableDefinition<'_, &str, FenceRow<'_>> = TableDefinition::new("fences");
const VALUES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("values");

/// The changes of fences by operators, numbered for each key: the token before, the token afterwards, the
/// time, the operator and the reason. The table is created with its first row.
const CHANGES: TableDefinition<'_, (&str, u64), ChangeRow<'_>> = TableDefinition::new("fence_changes");

/// The errors of a folder that can't be synced, and whose disk has not failed.
#[cfg(unix)]
const UNSYNCED: [ErrorKind; 3] =
    [ErrorKind::InvalidInput, ErrorKind::Unsupported, ErrorKind::PermissionDenied];

/// The size of the cache that redb keeps in memory.
const CACHE_BYTES: usize = 16 << 20;

/// Keeps values and fences on a disk. An accepted write or claim is synced before it is acknowledged.
///
/// A call blocks its thread while the disk syncs, and completes at once otherwise.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use resource::fence::{Guard, WriteOutcome};
/// use resource::store::{RedbStore, Store, Write};
/// use resource::{Fencing, ResourceKey};
///
/// // `RedbStore::open("resource.redb")?` in a service.
/// let store = RedbStore::create(redb::backends::InMemoryBackend::new())?;
/// let write = Write { guard: Guard::token("34".parse()?), owner: None, body: "paid".into() };
/// let outcome = store.write(&ResourceKey::new("orders:42")?, &write, Fencing::On).await?;
/// assert!(matches!(outcome, WriteOutcome::Accepted(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedbStore {
    database: Database,
    /// Locked from before a decision until its event is emitted: otherwise, a decision could overtake the
    /// event of the previous one. Writers exclude one another in redb anyway, and readers wait only briefly.
    deciding: Mutex<()>,
    max_jump: Option<MaxJump>,
}

impl RedbStore {
    /// Opens a store on `backend`, which is empty or has the data of an earlier store, possibly after a
    /// crash.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the disk fails or holds something else.
    pub fn create(backend: impl StorageBackend) -> Result<Self, StoreError> {
        Self::prepare(
            redb::Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(backend).map_err(failed)?,
        )
    }

    /// Opens a store in the file at `path`, and creates the file if it does not exist. No other process may
    /// have it open.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::create`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create(path).map_err(failed)?;
        // The name of a new file must survive a loss of power, too.
        #[cfg(unix)]
        {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()) {
                // A folder that may not be read, or a file system that can't do that.
                Err(error) if UNSYNCED.contains(&error.kind()) => {}
                synced => synced.map_err(failed)?,
            }
        }
        Self::prepare(database)
    }

    /// Refuses tokens above `max_jump`, as long as fencing is on.
    #[must_use]
    pub fn with_max_jump(self, max_jump: MaxJump) -> Self {
        Self { max_jump: Some(max_jump), ..self }
    }

    /// Lets the database notice that its disk has failed, by an empty commit. Dropping the store then costs
    /// nothing; otherwise the drop would prepare a clean close in memory before it noticed. On a disk that
    /// works, it changes nothing that can be read.
    pub fn notice_failure(&self) {
        // Both fail on a failed disk, which is all that is wanted of them.
        if let Ok(transaction) = self.begin() {
            let _ = transaction.commit();
        }
    }

    fn prepare(database: Database) -> Result<Self, StoreError> {
        let transaction = database.begin_write().map_err(failed)?;
        transaction.open_table(FENCES).map_err(failed)?;
        transaction.open_table(VALUES).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(Self { database, deciding: Mutex::new(()), max_jump: None })
    }

    fn begin(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_durability(Durability::Immediate).map_err(failed)?;
        Ok(transaction)
    }

    fn apply(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let transaction = self.begin()?;
        let (mut fence, Write { guard, owner, .. }) = (load(&transaction, key)?, write);
        let outcome =
            fence.write_beside_within(self.max_jump, *guard, beside, owner.as_ref(), digest, fencing);
        if matches!(outcome, WriteOutcome::Accepted(_)) {
            commit(transaction, key, &fence, &write.body)?;
        }
        Ok(outcome)
    }

    fn claim(
        &self,
        key: &ResourceKey,
        mark: &Mark,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let transaction = self.begin()?;
        let before = load(&transaction, key)?;
        let mut fence = before.clone();
        if let Err(refusal) = fence.claim_beside_within(self.max_jump, mark, beside, fencing) {
            return Ok(ReadOutcome::Refused(refusal));
        }
        if fence != before {
            save(&transaction, key, &fence)?;
            transaction.commit().map_err(failed)?;
        }
        self.snapshot(key).map(ReadOutcome::Read)
    }

    fn snapshot(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let fences = transaction.open_table(FENCES).map_err(failed)?;
        let values = transaction.open_table(VALUES).map_err(failed)?;
        let fence = find(&fences, key)?;
        let value = values.get(key.as_str()).map_err(failed)?;
        Ok(Snapshot {
            value: value.map(|row| Bytes::copy_from_slice(row.value())),
            version: fence.version,
            max_fence: fence.max_fence(),
        })
    }
}

impl Store for RedbStore {
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
        let digest = BodyDigest::of(&write.body);
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.apply(key, write, beside, digest, fencing)?;
        event::write_decided(key, write, digest, &outcome);
        Ok(outcome)
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = match read.mark() {
            None => ReadOutcome::Read(self.snapshot(key)?),
            Some(mark) => self.claim(key, &mark, beside, fencing)?,
        };
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }
}

impl FenceAdmin for RedbStore {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = self.begin()?;
        let mut fence = load(&transaction, key)?;
        if let Err(moved) = fence.set(change.from, change.to) {
            return Ok(SetOutcome::Moved(moved));
        }
        save(&transaction, key, &fence)?;
        record(&transaction, key, change)?;
        transaction.commit().map_err(failed)?;
        event::fence_set(key, change.from, change.to);
        Ok(SetOutcome::Set)
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let changes = match transaction.open_table(CHANGES) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            table => table.map_err(failed)?,
        };
        let rows = changes.range((key.as_str(), 0)..=(key.as_str(), u64::MAX)).map_err(failed)?;
        let newest = rows.rev().take(CHANGES_MAX);
        newest.map(|row| row.map(|(_, row)| change_of(row.value())).map_err(failed)).collect()
    }
}

/// Appends `change` to the records of `key`.
fn record(transaction: &WriteTransaction, key: &ResourceKey, change: &FenceChange) -> Result<(), StoreError> {
    let mut changes = transaction.open_table(CHANGES).map_err(failed)?;
    let mut rows = changes.range((key.as_str(), 0)..=(key.as_str(), u64::MAX)).map_err(failed)?;
    let last = rows.next_back().transpose().map_err(failed)?.map_or(0, |(place, _)| place.value().1);
    drop(rows);
    let FenceChange { from, to, who, reason, at_millis } = change;
    let number = |token: &Option<FencingToken>| token.map_or(0, FencingToken::as_u64);
    let row = (number(from), number(to), *at_millis, who.as_str(), reason.as_str());
    changes.insert((key.as_str(), last + 1), row).map_err(failed)?;
    Ok(())
}

fn change_of((from, to, at_millis, who, reason): ChangeRow<'_>) -> FenceChange {
    FenceChange {
        from: FencingToken::new(from),
        to: FencingToken::new(to),
        who: who.to_owned(),
        reason: reason.to_owned(),
        at_millis,
    }
}

fn load(transaction: &WriteTransaction, key: &ResourceKey) -> Result<Fence, StoreError> {
    let mut fence = find(&transaction.open_table(FENCES).map_err(failed)?, key)?;
    if let Some(highest) = fence.max_fence() {
        fence.beside = permits::load(transaction, key, highest)?;
    }
    Ok(fence)
}

/// Reads the fence of `key` without its permits.
fn find(
    fences: &impl ReadableTable<&'static str, FenceRow<'static>>,
    key: &ResourceKey,
) -> Result<Fence, StoreError> {
    match fences.get(key.as_str()).map_err(failed)? {
        Some(row) => decode(row.value()),
        None => Ok(Fence::default()),
    }
}

/// Makes an accepted write durable. A transaction that is dropped instead leaves nothing behind.
fn commit(
    transaction: WriteTransaction,
    key: &ResourceKey,
    fence: &Fence,
    value: &[u8],
) -> Result<(), StoreError> {
    save(&transaction, key, fence)?;
    let mut values = transaction.open_table(VALUES).map_err(failed)?;
    values.insert(key.as_str(), value).map_err(failed)?;
    drop(values);
    transaction.commit().map_err(failed)
}

fn save(transaction: &WriteTransaction, key: &ResourceKey, fence: &Fence) -> Result<(), StoreError> {
    let mut fences = transaction.open_table(FENCES).map_err(failed)?;
    let highest = fence.highest.as_ref().map(mark_row);
    let last_write = fence.last_write.as_ref().map(|last| (write_row(last), last.digest.as_bytes()));
    fences.insert(key.as_str(), (fence.version, highest, last_write)).map_err(failed)?;
    drop(fences);
    permits::save(transaction, key, fence)
}

fn mark_row(mark: &Mark) -> MarkRow<'_> {
    let Mark { position, owner } = mark;
    (position.token().as_u64(), position.seq(), owner.as_ref().map(OwnerToken::as_str))
}

fn write_row(last: &LastWrite) -> MarkRow<'_> {
    let (token, number) = last.guard.to_parts();
    (token, number, last.owner.as_ref().map(OwnerToken::as_str))
}

fn decode((version, highest, last_write): FenceRow<'_>) -> Result<Fence, StoreError> {
    let last_write = match last_write {
        Some((row, digest)) => Some(decode_write(row, BodyDigest::from_bytes(*digest))?),
        None => None,
    };
    let highest = highest.map(decode_mark).transpose()?;
    Ok(Fence { version, highest, beside: Vec::new(), last_write })
}

fn decode_write((token, number, owner): MarkRow<'_>, digest: BodyDigest) -> Result<LastWrite, StoreError> {
    let guard =
        Guard::from_parts(token, number).ok_or(StoreError::Corrupt("a write has the position of a claim"))?;
    Ok(LastWrite { guard, owner: decode_owner(owner)?, digest })
}

fn decode_mark((token, seq, owner): MarkRow<'_>) -> Result<Mark, StoreError> {
    let token = FencingToken::new(token).ok_or(StoreError::Corrupt("a fencing token is zero"))?;
    Ok(Mark { position: Position::from_parts(token, seq), owner: decode_owner(owner)? })
}

fn decode_owner(owner: Option<&str>) -> Result<Option<OwnerToken>, StoreError> {
    owner.map(OwnerToken::new).transpose().map_err(|_| StoreError::Corrupt("an owner token is no text"))
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    StoreError::Unavailable(Box::new(error.into()))
}
