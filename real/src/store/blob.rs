//! The guarded blob write: a blob is written only after the row of its resource has accepted the token.
//!
//! A blob store does not compare tokens, so the row is written first: a writer whose token is refused never
//! touches the blobs. A writer may pause between the row's answer and its upload. Each blob therefore has a
//! name of its own, which contains the token, so that no other grant can overwrite it; the row's value is the
//! name of the current blob.
//!
//! Source: Palma, "Distributed locks and fencing tokens: why TTL alone is not enough", "Practical example:
//! lock, fence, and guarded blob write". The name with the token closes the window that is left there between
//! steps 4 and 5.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use resource::fence::{Fencing, WriteOutcome};
use resource::store::{Read, ReadOutcome, Store, StoreError, Write};
use resource::{BodyDigest, ResourceKey};

/// Blobs in a folder on disk, as in a bucket.
#[derive(Clone, Debug)]
pub struct BlobFolder(Arc<Path>);

/// Blobs guarded by the fence of a store.
#[derive(Clone, Debug)]
pub struct GuardedBlobs<S> {
    store: Arc<S>,
    blobs: BlobFolder,
}

/// Why a blob was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The row failed: see [`StoreError`]. Repeating the same write is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The blob store failed after the row had accepted the token. Repeating the same write completes it.
    #[error("the blob {name} failed: {source}; repeat the same write")]
    Blob {
        /// Its name.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl<S: Store> GuardedBlobs<S> {
    /// Creates a store of blobs in `blobs`, guarded by the rows of `store`.
    pub fn new(store: Arc<S>, blobs: BlobFolder) -> Self {
        Self { store, blobs }
    }

    /// Writes the body of `write` as the blob of `key` if its token is accepted.
    ///
    /// # Errors
    ///
    /// [`BlobError`]. In either case the same write may be repeated if it names its owner.
    pub async fn put(&self, key: &ResourceKey, write: &Write) -> Result<WriteOutcome, BlobError> {
        let name = name_of(key, write);
        let row = Write { body: Bytes::copy_from_slice(name.as_bytes()), ..write.clone() };
        let outcome = self.store.write(key, &row, Fencing::On).await?;
        // Also for a repeated write: the first attempt may have stopped before its upload completed.
        if matches!(outcome, WriteOutcome::Accepted(_) | WriteOutcome::Repeated(_)) {
            self.blobs.put(&name, &write.body).await?;
        }
        Ok(outcome)
    }

    /// Returns the current blob; `None` if there is none, or its upload is not complete.
    ///
    /// # Errors
    ///
    /// [`BlobError`].
    pub async fn get(&self, key: &ResourceKey) -> Result<Option<Bytes>, BlobError> {
        let name = match self.store.read(key, &Read::default(), Fencing::On).await? {
            ReadOutcome::Read(snapshot) => snapshot.value,
            ReadOutcome::Refused(_) => None,
        };
        let Some(name) = name else { return Ok(None) };
        let name =
            std::str::from_utf8(&name).map_err(|_| StoreError::Corrupt("the name of a blob is no text"))?;
        self.blobs.get(name).await
    }
}

/// Returns the name of a blob: key, token, sequence (for a conditional write zero and the version) and
/// digest. No two accepted writes share it, and the names of a key sort by token. The digest distinguishes a
/// retry from another body under the same token, which the row then refuses.
fn name_of(key: &ResourceKey, write: &Write) -> String {
    let (token, number) = write.guard.to_parts();
    let digest = BodyDigest::of(&write.body).short();
    format!("{}/{token:020}-{number:020}-{digest}", key.to_path_segment())
}

impl BlobFolder {
    /// Opens blobs as files in `folder`, which is created if needed.
    ///
    /// # Errors
    ///
    /// An error of the disk.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self(folder.into()))
    }

    async fn put(&self, name: &str, body: &Bytes) -> Result<(), BlobError> {
        let (path, body) = (self.0.join(name), body.clone());
        on_disk(name, move || replace(&path, &body)).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>, BlobError> {
        let path = self.0.join(name);
        on_disk(name, move || match std::fs::read(&path) {
            Ok(body) => Ok(Some(body.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }
}

#[allow(clippy::disallowed_methods, reason = "the disk blocks, on a live server")]
async fn on_disk<T: Send + 'static>(
    name: &str,
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, BlobError> {
    let done = tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|source| BlobError::Blob { name: name.to_owned(), source })
}

/// Writes a file atomically: under another name, synced, then renamed.
fn replace(path: &PathBuf, body: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension("part");
    let mut file = std::fs::File::create(&unfinished)?;
    file.write_all(body)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)
}
