//! A store in a folder of files: a file with the record of a key is replaced by a rename, under a lock of the
//! operating system.
//!
//! The files of a key begin with its name, `k-orders:42`:
//!
//! - `NAME.record` has the fence, and the value if it is small. It is replaced as a whole.
//! - `NAME.value-7` has a larger value, that of version 7. It is written and synced before the record that
//!   names it, and deleted after the record that names another.
//! - `lock-00` to `lock-ff` are locked from before the record is read until the decision is reported; each
//!   belongs to a 256th of the keys. The system unlocks them when a process dies. Deleting one while a
//!   process runs would give two processes the lock. A lock file that is not empty marks that a
//!   record was being replaced. A process that died may have renamed the record without syncing the folder:
//!   the next one that locks the file syncs the folder first, so that no answer follows from a record that a
//!   loss of power would undo.
//!
//! So a process that dies at any point leaves the old state or the new one, and at most a file that nothing
//! names: [`FolderStore::sweep`] deletes those.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use files::Draft;

use super::record::{Body, INLINE_BYTES_MAX, Judged, Record, newest_first};
use super::{FenceAdmin, FenceChange, SetOutcome};
use super::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use crate::fence::{Beside, Fencing, MaxJump, WriteOutcome};
use crate::hex::hex;
use crate::{BodyDigest, ResourceKey, event};

/// The longest name of a key, in bytes of its file name. Longer ones are replaced by their digest, since file
/// systems allow 255 bytes.
const NAME_BYTES_MAX: usize = 160;
/// The beginning of the names of temporary files: see [`files`].
const TEMPORARY: &str = ".new-";

/// Keeps values and fences as files in a folder. An accepted write or claim is synced before it is
/// acknowledged. Several processes of one machine may use the folder at the same time; it must be on a file
/// system of that machine, since network file systems keep neither locks nor syncs reliably.
///
/// A call blocks its thread while it waits for the lock and the disk, and completes at once otherwise. A
/// process that is paused during a call delays the others' calls for a 256th of the keys.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use resource::fence::{Guard, WriteOutcome};
/// use resource::store::{FolderStore, Store, Write};
/// use resource::{Fencing, ResourceKey};
///
/// # let folder = std::env::temp_dir().join(format!("folder-store-doc-{}", std::process::id()));
/// let store = FolderStore::open(&folder)?;
/// let write = Write { guard: Guard::token("34".parse()?), owner: None, body: "paid".into() };
/// let outcome = store.write(&ResourceKey::new("orders:42")?, &write, Fencing::On).await?;
/// assert!(matches!(outcome, WriteOutcome::Accepted(_)));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
pub struct FolderStore {
    folder: PathBuf,
    max_jump: Option<MaxJump>,
    inline_bytes_max: usize,
    after_step: Box<dyn Fn(FolderStep) + Send + Sync>,
}

/// The steps of a write, for tests that stop it after each.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderStep {
    Locked,
    ValueDrafted,
    ValueWritten,
    RecordDrafted,
    RecordReplaced,
    OldValueDeleted,
}

impl FolderStore {
    /// Opens the store in `folder`, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if no file can be written there.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        let folder = folder.as_ref().to_owned();
        files::create_folder(&folder).map_err(failed)?;
        files::try_folder(&folder).map_err(failed)?;
        // A process that made the folder, and died, may not have synced its name.
        if let Some(parent) = fs::canonicalize(&folder).map_err(failed)?.parent() {
            files::sync_folder(parent).map_err(failed)?;
        }
        Ok(Self { folder, max_jump: None, inline_bytes_max: INLINE_BYTES_MAX, after_step: Box::new(|_| ()) })
    }

    /// Refuses tokens above `max_jump`, as long as fencing is on.
    #[must_use]
    pub fn with_max_jump(self, max_jump: MaxJump) -> Self {
        Self { max_jump: Some(max_jump), ..self }
    }

    /// Keeps values of up to `bytes` in the record, 4,096 by default; larger ones get a file of their own.
    #[must_use]
    pub fn with_inline_bytes_max(self, bytes: usize) -> Self {
        Self { inline_bytes_max: bytes, ..self }
    }

    /// Calls `after_step` after each step of a change.
    #[doc(hidden)]
    #[must_use]
    pub fn with_steps(self, after_step: impl Fn(FolderStep) + Send + Sync + 'static) -> Self {
        Self { after_step: Box::new(after_step), ..self }
    }

    /// Deletes the files that nothing names and that were written before `before`; returns their number. It
    /// is safe at any time: files of a write in progress are under its lock, or it fails without an effect.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the disk fails.
    pub fn sweep(&self, before: SystemTime) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_old = match entry.metadata().and_then(|metadata| metadata.modified()) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                modified => modified.map_err(failed)? < before,
            };
            if is_old && self.delete_left(&name)? {
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Deletes a file that is a temporary one, or a value that no record names; returns false for any other.
    fn delete_left(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.folder.join(name);
        if name.starts_with(TEMPORARY) {
            return remove(&path).map(|()| true).map_err(failed);
        }
        // A key may contain any of these words, but no part after the last full stop does.
        let Some((stem, kind)) = name.rsplit_once('.') else { return Ok(false) };
        if !kind.starts_with("value-") {
            return Ok(false);
        }
        // Until it is deleted: a write could give the file a name again.
        let _lock = self.lock(stem)?;
        if self.load(stem, None)?.body_name() == Some(name) {
            return Ok(false);
        }
        remove(&path).map(|()| true).map_err(failed)
    }

    /// Locks the keys whose names share a lock with `stem`, until the file is dropped, and syncs what a
    /// process that died has left.
    fn lock(&self, stem: &str) -> Result<File, StoreError> {
        let place = BodyDigest::of(stem.as_bytes()).as_bytes()[0];
        let path = self.folder.join(format!("lock-{place:02x}"));
        let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        file.lock().map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > 0 {
            files::sync_folder(&self.folder).map_err(failed)?;
            file.set_len(0).map_err(failed)?;
        }
        Ok(file)
    }

    /// Reads a record, that of `key` if it is known.
    fn load(&self, stem: &str, key: Option<&ResourceKey>) -> Result<Record, StoreError> {
        let bytes = match fs::read(self.record_path(stem)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Record::default()),
            bytes => Bytes::from(bytes.map_err(failed)?),
        };
        Record::from_bytes(&bytes, key.map(ResourceKey::as_str))
    }

    fn record_path(&self, stem: &str) -> PathBuf {
        self.folder.join(format!("{stem}.record"))
    }

    /// Judges the record of `key` under its `lock`, and stores what `judge` makes of it, with `body` if there
    /// is one. Returns the outcome and the record as it is then.
    fn change<T>(
        &self,
        lock: &File,
        key: &ResourceKey,
        body: Option<&Bytes>,
        judge: impl FnOnce(&mut Record) -> Judged<T>,
    ) -> Result<(T, Record), StoreError> {
        let stem = stem_of(key);
        (self.after_step)(FolderStep::Locked);
        let found = self.load(&stem, Some(key))?;
        let mut record = found.clone();
        let judged = judge(&mut record);
        if !judged.is_changed {
            return Ok((judged.outcome, found));
        }
        if let Some(body) = body {
            record.body = self.place(&stem, body, record.fence.version)?;
        }
        let bytes = record.to_bytes(key.as_str());
        let path = self.record_path(&stem);
        lock.set_len(1).map_err(failed)?;
        self.replace(&path, &bytes, FolderStep::RecordDrafted, FolderStep::RecordReplaced)?;
        // The record is on the disk. If the mark stays, the next process syncs the folder once more.
        let _ = lock.set_len(0);
        if let Some(old) = found.body_name()
            && record.body_name() != Some(old)
        {
            // The write is applied: a file that can't be deleted is for the sweep.
            let _ = remove(&self.folder.join(old));
            (self.after_step)(FolderStep::OldValueDeleted);
        }
        Ok((judged.outcome, record))
    }

    /// Returns the place of `body`, after writing it to a file if it is large. The record that was read names
    /// a file of a lower version, if any, so only a leftover is overwritten.
    fn place(&self, stem: &str, body: &Bytes, version: u64) -> Result<Body, StoreError> {
        if body.len() <= self.inline_bytes_max {
            return Ok(Body::Inline(body.clone()));
        }
        let name = format!("{stem}.value-{version}");
        let path = self.folder.join(&name);
        self.replace(&path, body, FolderStep::ValueDrafted, FolderStep::ValueWritten)?;
        Ok(Body::Named(name))
    }

    /// Replaces the file at `path` whole, and waits until it is on the disk.
    fn replace(
        &self,
        path: &Path,
        bytes: &[u8],
        drafted: FolderStep,
        replaced: FolderStep,
    ) -> Result<(), StoreError> {
        let mut draft = Draft::begin(path).map_err(failed)?;
        draft.write_all(bytes).and_then(|()| draft.flush()).map_err(failed)?;
        (self.after_step)(drafted);
        draft.commit().map_err(failed)?;
        (self.after_step)(replaced);
        Ok(())
    }

    fn snapshot(&self, record: &Record) -> Result<Snapshot, StoreError> {
        let value = match &record.body {
            Body::None => None,
            Body::Inline(value) => Some(value.clone()),
            Body::Named(name) => match fs::read(self.folder.join(name)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(StoreError::Corrupt(
                        "the file with the value is gone: only `sweep` may delete it",
                    ));
                }
                value => Some(Bytes::from(value.map_err(failed)?)),
            },
        };
        record.snapshot(value)
    }
}

impl Store for FolderStore {
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
        let lock = self.lock(&stem_of(key))?;
        let judge = |record: &mut Record| record.write(self.max_jump, write, beside, digest, fencing);
        let (outcome, _) = self.change(&lock, key, Some(&write.body), judge)?;
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
        let stem = stem_of(key);
        let lock = self.lock(&stem)?;
        let (judged, record) = match read.mark() {
            None => (Ok(()), self.load(&stem, Some(key))?),
            Some(mark) => {
                let judge = |record: &mut Record| record.claim(self.max_jump, &mark, beside, fencing);
                self.change(&lock, key, None, judge)?
            }
        };
        let outcome = match judged {
            Err(refusal) => ReadOutcome::Refused(refusal),
            Ok(()) => ReadOutcome::Read(self.snapshot(&record)?),
        };
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }
}

impl FenceAdmin for FolderStore {
    /// Sets the fence as [`FenceAdmin::set_fence`] says; the record keeps the newest 100 changes only.
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let lock = self.lock(&stem_of(key))?;
        let (outcome, _) = self.change(&lock, key, None, |record| record.set_fence(change))?;
        if outcome == SetOutcome::Set {
            event::fence_set(key, change.from, change.to);
        }
        Ok(outcome)
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        let stem = stem_of(key);
        let _lock = self.lock(&stem)?;
        Ok(newest_first(self.load(&stem, Some(key))?))
    }
}

impl std::fmt::Debug for FolderStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FolderStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Returns the beginning of the names of a key's files.
fn stem_of(key: &ResourceKey) -> String {
    let segment = key.to_path_segment().to_string();
    if segment.len() <= NAME_BYTES_MAX {
        return format!("k-{segment}");
    }
    format!("d-{}", hex(BodyDigest::of(key.as_str().as_bytes()).as_bytes()))
}

/// Deletes a file that may be gone.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
