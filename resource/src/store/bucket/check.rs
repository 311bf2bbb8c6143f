//! Finds out whether a bucket keeps the conditions of puts: some servers ignore them.

use object_store::{Error, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};

use super::{BucketStore, brief};

/// Why a bucket can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It does what a condition forbids.
    #[error(
        "the bucket ignores {condition}: it would let a stale writer in; use a server with conditional puts, \
         such as S3 since 2024"
    )]
    Ignored {
        /// The condition.
        condition: &'static str,
    },
    /// It refuses what a condition allows.
    #[error(
        "the bucket refuses a put although its {condition} holds: {answer}; use a server with conditional \
         puts"
    )]
    Refused {
        /// The condition.
        condition: &'static str,
        /// Its answer.
        answer: String,
    },
    /// It can't be reached, or does not admit this user.
    #[error("the bucket failed: {0}; check its address, its name and the credentials")]
    Failed(String),
}

const CREATE: &str = "If-None-Match: *";
const UPDATE: &str = "If-Match";

impl BucketStore {
    /// Checks with an object of its own that the bucket keeps the conditions of puts, and deletes the object.
    /// Call it before the first request: a server that ignores a condition answers as if it had kept it.
    ///
    /// It shows that conditions are judged, not that check and write are one step of the server.
    ///
    /// # Errors
    ///
    /// [`CheckError`] says what to do.
    pub async fn check_conditional_puts(&self) -> Result<(), CheckError> {
        let path = self.prefix.clone().join("check").join(self.next_name());
        let put = async |mode: PutMode, body: &'static str| {
            let options = PutOptions { mode, ..PutOptions::default() };
            self.bucket.put_opts(&path, body.into(), options).await
        };
        let checked = async {
            let first = put(PutMode::Create, "1").await.map_err(failed)?;
            refused(CREATE, put(PutMode::Create, "2").await)?;
            let first = UpdateVersion::from(first);
            let second = put(PutMode::Update(first.clone()), "3").await;
            second.map_err(|error| CheckError::Refused { condition: UPDATE, answer: brief(&error) })?;
            refused(UPDATE, put(PutMode::Update(first), "4").await)
        };
        let checked = checked.await;
        // A check that failed half-way may have left nothing to delete.
        let _ = self.bucket.delete(&path).await;
        checked
    }
}

fn refused<T>(condition: &'static str, answer: Result<T, Error>) -> Result<(), CheckError> {
    match answer {
        Ok(_) => Err(CheckError::Ignored { condition }),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: Error) -> CheckError {
    CheckError::Failed(brief(&error))
}
