//! A store in a bucket: an object with the record of a key is swapped by conditional puts.
//!
//! The bucket has one object for each key, `KEY/record`. It holds the fence, and the value if that is small;
//! a larger value is an object of its own, `KEY/bodies/NAME`, which is written once, before the record that
//! names it. A request is judged on the record that was read, and the new record is put on the condition that
//! the object still has the ETag that was read (`If-Match`), or that there is none yet (`If-None-Match: *`).
//! If another process was faster, the record is read and judged again. So check and write are one step,
//! whoever else uses the bucket.
//!
//! - *Lost answers.* The bucket's own client must not retry puts, since a retry of an applied put fails its
//!   condition. This store puts again itself: it reads the record first, and recognises its own by the name
//!   of the call.
//! - *Leftovers.* A call that ends deletes the body that it uploaded in vain, and the one that it replaced. A
//!   process that dies leaves them: [`BucketStore::sweep`] deletes them.
//!
//! Source of the conditional puts: RFC 9110, section 13.1; AWS, "How to prevent object overwrites with
//! conditional writes".

mod check;
mod swap;
mod sweep;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use dlock_runtime::Runtime;
use object_store::path::Path;
use object_store::{Attribute, Attributes, Error, ObjectStore, ObjectStoreExt, UpdateVersion};
use tokio::sync::Mutex;

pub use self::check::CheckError;
use super::record::{Body, INLINE_BYTES_MAX, Judged, Record, newest_first};
use super::{FenceAdmin, FenceChange, SetOutcome};
use super::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use crate::fence::{Beside, Fencing, MaxJump, WriteOutcome};
use crate::hex::hex;
use crate::{BodyDigest, ResourceKey, event};

/// The number of times that a call reads and judges a record before it gives up.
const ROUNDS_MAX: usize = 64;
/// The number of times that a call asks the bucket again after an answer was lost.
const LOST_MAX: usize = 2;
/// The number of decisions that can be in progress at a time; keys rarely share a gate.
const GATES: usize = 64;

/// Keeps values and fences in a bucket of an object store that has conditional puts, such as S3. Any number
/// of processes may use one bucket.
///
/// The bucket must be private: a record contains whole owner tokens. Decisions about a key are reported in
/// their order by one process; several processes are as safe, but their reports may be out of order.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use dlock::TokioRuntime;
/// use object_store::memory::InMemory;
/// use resource::fence::{Guard, WriteOutcome};
/// use resource::store::{BucketStore, Store, Write};
/// use resource::{Fencing, ResourceKey};
/// use tokio::runtime::Handle;
///
/// // In a service: `AmazonS3Builder::from_env().with_bucket_name("orders")`, of `object_store` with the
/// // feature `aws`, and `with_retry(RetryConfig { max_retries: 0, ..Default::default() })`.
/// let bucket = Arc::new(InMemory::new());
/// let store = BucketStore::new(bucket, "resources", &TokioRuntime::new(Handle::current()));
/// store.check_conditional_puts().await?;
///
/// let write = Write { guard: Guard::token("34".parse()?), owner: None, body: "paid".into() };
/// let outcome = store.write(&ResourceKey::new("orders:42")?, &write, Fencing::On).await?;
/// assert!(matches!(outcome, WriteOutcome::Accepted(_)));
/// # Ok(())
/// # }
/// ```
pub struct BucketStore {
    bucket: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The random name of this store among all that use the bucket.
    process: String,
    calls: AtomicU64,
    lost_races: AtomicU64,
    /// Gates by the key's hash, locked from before a decision until its event is emitted: otherwise the next
    /// decision could be reported first.
    gates: Box<[Mutex<()>]>,
    max_jump: Option<MaxJump>,
    inline_bytes_max: usize,
}

impl BucketStore {
    /// Creates a store of the objects under `prefix` in `bucket`. `runtime` draws a random name, by which the
    /// store recognises its own puts.
    ///
    /// The client behind `bucket` must not retry requests: set its `max_retries` to 0.
    pub fn new(bucket: Arc<dyn ObjectStore>, prefix: &str, runtime: &impl Runtime) -> Self {
        let mut process = [0; 16];
        runtime.fill_random(&mut process);
        Self {
            bucket,
            prefix: Path::from(prefix),
            process: hex(&process),
            calls: AtomicU64::new(0),
            lost_races: AtomicU64::new(0),
            gates: std::iter::repeat_with(|| Mutex::new(())).take(GATES).collect(),
            max_jump: None,
            inline_bytes_max: INLINE_BYTES_MAX,
        }
    }

    /// Refuses tokens above `max_jump`, as long as fencing is on.
    #[must_use]
    pub fn with_max_jump(self, max_jump: MaxJump) -> Self {
        Self { max_jump: Some(max_jump), ..self }
    }

    /// Keeps values of up to `bytes` in the record, 4,096 by default; larger ones get an object of their own.
    #[must_use]
    pub fn with_inline_bytes_max(self, bytes: usize) -> Self {
        Self { inline_bytes_max: bytes, ..self }
    }

    /// Returns the number of puts that failed since another process was faster.
    pub fn lost_races(&self) -> u64 {
        self.lost_races.load(Ordering::Relaxed)
    }

    fn record_path(&self, key: &ResourceKey) -> Path {
        self.prefix.clone().join(key.as_str()).join("record")
    }

    fn body_path(&self, key: &ResourceKey, name: &str) -> Path {
        self.prefix.clone().join(key.as_str()).join("bodies").join(name)
    }

    /// Returns a name that no other call of any process has.
    fn next_name(&self) -> String {
        format!("{}-{}", self.process, self.calls.fetch_add(1, Ordering::Relaxed))
    }

    fn gate(&self, key: &ResourceKey) -> &Mutex<()> {
        let digest = BodyDigest::of(key.as_str().as_bytes());
        &self.gates[usize::from(digest.as_bytes()[0]) % GATES]
    }

    /// Reads the record of `key`, and the version of its object; `None` if there is no object.
    async fn load(&self, key: &ResourceKey) -> Result<(Record, Option<UpdateVersion>), StoreError> {
        let Some((bytes, version)) = self.get(&self.record_path(key)).await? else {
            return Ok((Record::default(), None));
        };
        if version.e_tag.is_none() {
            return Err(Failure::NoEtag.into());
        }
        Ok((Record::from_bytes(&bytes, Some(key.as_str()))?, Some(version)))
    }

    /// Reads an object; `None` if there is none. Asks again if the answer is lost.
    async fn get(&self, path: &Path) -> Result<Option<(Bytes, UpdateVersion)>, StoreError> {
        let mut lost = 0;
        loop {
            let answer = async {
                let found = self.bucket.get(path).await?;
                let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: None };
                Ok((found.bytes().await?, version))
            };
            match answer.await {
                Ok(found) => return Ok(Some(found)),
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(Error::Generic { .. }) if lost < LOST_MAX => lost += 1,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Reads the value that `record` names; `None` if its object was deleted, since the record was replaced.
    async fn value(&self, key: &ResourceKey, record: &Record) -> Result<Option<Option<Bytes>>, StoreError> {
        match &record.body {
            Body::None => Ok(Some(None)),
            Body::Inline(value) => Ok(Some(Some(value.clone()))),
            Body::Named(name) => {
                let found = self.get(&self.body_path(key, name)).await?;
                Ok(found.map(|(value, _)| Some(value)))
            }
        }
    }

    /// Returns the value with its record, which is `record` unless it was replaced meanwhile.
    async fn snapshot(&self, key: &ResourceKey, mut record: Record) -> Result<Snapshot, StoreError> {
        for _ in 0..ROUNDS_MAX {
            if let Some(value) = self.value(key, &record).await? {
                return record.snapshot(value);
            }
            let (newer, _) = self.load(key).await?;
            if newer.body_name() == record.body_name() {
                return Err(StoreError::Corrupt(
                    "the object with the value is gone: only `sweep` may delete it",
                ));
            }
            record = newer;
        }
        Err(Failure::Contended.into())
    }

    /// Deletes the body `name` if possible; a sweep finds it otherwise.
    async fn discard(&self, key: &ResourceKey, name: &str) {
        let _ = self.bucket.delete(&self.body_path(key, name)).await;
    }
}

/// Returns the metadata of an object: the highest token and the version of its record.
fn attributes(record: &Record) -> Attributes {
    let token = record.fence.max_fence().map_or(0, dlock::FencingToken::as_u64);
    let metadata = |name: &'static str, number: u64| (Attribute::Metadata(name.into()), number.to_string());
    [metadata("fencing-token", token), metadata("version", record.fence.version)].into_iter().collect()
}

impl Store for BucketStore {
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
        let _gate = self.gate(key).lock().await;
        let judge = |record: &mut Record| record.write(self.max_jump, write, beside, digest, fencing);
        let (outcome, _) = self.swap(key, Some(&write.body), judge).await?;
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
        let _gate = self.gate(key).lock().await;
        let (refused, record) = match read.mark() {
            None => (Ok(()), self.load(key).await?.0),
            Some(mark) => {
                let judge = |record: &mut Record| record.claim(self.max_jump, &mark, beside, fencing);
                self.swap(key, None, judge).await?
            }
        };
        let outcome = match refused {
            Err(refusal) => ReadOutcome::Refused(refusal),
            Ok(()) => ReadOutcome::Read(self.snapshot(key, record).await?),
        };
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }
}

impl FenceAdmin for BucketStore {
    /// Sets the fence as [`FenceAdmin::set_fence`] says; the record keeps the newest 100 changes only.
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let _gate = self.gate(key).lock().await;
        let (outcome, _) = self.swap(key, None, |record: &mut Record| record.set_fence(change)).await?;
        if outcome == SetOutcome::Set {
            event::fence_set(key, change.from, change.to);
        }
        Ok(outcome)
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        Ok(newest_first(self.load(key).await?.0))
    }
}

impl fmt::Debug for BucketStore {
    /// Writes the kind of the bucket and its name, but no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore")
            .field("bucket", &self.bucket.to_string())
            .field("prefix", &self.prefix.as_ref())
            .finish_non_exhaustive()
    }
}

/// A failure of this store itself.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("other processes changed the key {ROUNDS_MAX} times first; ask again")]
    Contended,
    #[error("no answer to a put, and the key has changed since: {0}; ask again with the same request")]
    Unknown(String),
    #[error("the bucket gives no ETag, so it can't compare versions; use one with conditional puts")]
    NoEtag,
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(Box::new(failure))
    }
}

/// Returns an error of the bucket, for clients.
fn failed(error: Error) -> StoreError {
    StoreError::Unavailable(brief(&error).into())
}

/// Returns the text of an error without the answer of the server, which begins with XML: that of S3 contains
/// the id of the key and the signed request.
fn brief(error: &Error) -> String {
    let text = error.to_string();
    text.split('<').next().unwrap_or_default().trim_end_matches([' ', ':']).to_owned()
}
