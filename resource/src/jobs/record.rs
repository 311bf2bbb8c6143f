//! The guarded side of jobs: it knows which are done, and commits their progress and their ends.

use std::error::Error;
use std::future::Future;

use bytes::Bytes;
use dlock::{FencingToken, Instant, Runtime};

use crate::client::{Client, ClientError, PutAnswer, ReadAnswer, Retry};
use crate::fence::{Guard, Refusal, WriteSeq};
use crate::store::{Read, Write};
use crate::{OwnerToken, ResourceKey};

/// The claim under which a job is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGrant {
    /// The resource of the job: [`job_key`](super::job_key).
    pub key: ResourceKey,
    /// The fencing token of the claim.
    pub token: FencingToken,
    /// The owner token of the claim.
    pub owner: Option<OwnerToken>,
}

/// A committed part of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// More is to do: the next part, or the next attempt, goes on from this progress.
    Progress(Vec<u8>),
    /// The job is done, with this result.
    Done(Vec<u8>),
}

/// The guarded side: a durable record of each job, which refuses stale tokens.
///
/// An implementation keeps two promises. After [`JobRecord::claim`] with a token, it takes nothing for the
/// job from a lower one. [`JobRecord::commit`] makes the part take effect in one durable step, or does
/// nothing.
pub trait JobRecord: Send + Sync {
    /// The error of the guarded side.
    type Error: Error + Send + Sync + 'static;

    /// Claims the job for the grant, and returns the last part that is committed; `None` if none is.
    ///
    /// # Errors
    ///
    /// [`JobRecordError`]; a claim may be asked again.
    fn claim(
        &mut self,
        grant: &JobGrant,
        deadline: Instant,
    ) -> impl Future<Output = Result<Option<Part>, JobRecordError<Self::Error>>> + Send;

    /// Commits a part. `number` counts the commits of the grant, from 1.
    ///
    /// # Errors
    ///
    /// [`JobRecordError`]. After [`JobRecordError::Failed`] the part may be committed: the next claim tells.
    fn commit(
        &mut self,
        grant: &JobGrant,
        number: WriteSeq,
        part: &Part,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), JobRecordError<Self::Error>>> + Send;
}

/// A claim that was not granted, or a commit that was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum JobRecordError<E> {
    /// The token is stale, or another claim's: a newer claim has the job, or the queue has lost its counter.
    #[error("the claim or commit was refused ({}): a newer claim has the job", .0.as_str())]
    Refused(Refusal),
    /// The record holds something that no commit writes.
    #[error("the record of the job is damaged: {0}")]
    Corrupt(String),
    /// There was no answer.
    #[error("the record of the job did not answer: {0}")]
    Failed(#[source] E),
}

/// The record of jobs at the resource, one resource for each job: its value is `part` or `done`, a blank, and
/// the progress or the result. A claim is a fenced read, a commit a write with the token. Since no lower
/// token is taken after the claim, the value that it has read is the latest when the commit is accepted.
///
/// Nothing else may write to these resources. They stay: as long as a job of that number may come back, its
/// record must be there.
pub struct ResourceJobs<R: Runtime> {
    client: Client<R>,
    retry: Option<Retry>,
}

impl<R: Runtime> ResourceJobs<R> {
    /// Creates a record that retries a commit whose answer is lost.
    pub fn new(client: Client<R>) -> Self {
        Self { client, retry: Some(Retry::default()) }
    }

    /// Sets the retries of a commit whose answer is lost; none if `None`.
    #[must_use]
    pub fn with_retry(self, retry: Option<Retry>) -> Self {
        Self { retry, ..self }
    }
}

impl<R: Runtime> JobRecord for ResourceJobs<R> {
    type Error = ClientError;

    async fn claim(
        &mut self,
        grant: &JobGrant,
        deadline: Instant,
    ) -> Result<Option<Part>, JobRecordError<ClientError>> {
        let read = Read { claim: Some(grant.token), owner: grant.owner.clone() };
        let refusal = match self.client.read_as(&grant.key, &read, deadline).await {
            Ok(ReadAnswer::Read(snapshot)) => {
                return snapshot.value.as_deref().map(part_of).transpose().map_err(JobRecordError::Corrupt);
            }
            Ok(ReadAnswer::Stale { seen, got }) => Refusal::Stale { seen, got },
            Ok(ReadAnswer::ForeignOwner { seen, got }) => Refusal::ForeignOwner { seen, got },
            Ok(ReadAnswer::Jump { seen, got, max }) => Refusal::Jump { seen, got, max },
            Err(error) => return Err(JobRecordError::Failed(error)),
        };
        Err(JobRecordError::Refused(refusal))
    }

    async fn commit(
        &mut self,
        grant: &JobGrant,
        number: WriteSeq,
        part: &Part,
        deadline: Instant,
    ) -> Result<(), JobRecordError<ClientError>> {
        let (word, bytes) = match part {
            Part::Progress(progress) => (PROGRESS, progress),
            Part::Done(result) => (DONE, result),
        };
        let write = Write {
            guard: Guard::Token { token: grant.token, seq: Some(number) },
            owner: grant.owner.clone(),
            body: Bytes::from([word, bytes].concat()),
        };
        let answer = match self.retry {
            Some(retry) => self.client.put_with_retry(&grant.key, &write, deadline, retry).await,
            None => self.client.put(&grant.key, &write, deadline).await,
        };
        match answer {
            Ok(PutAnswer::Accepted { .. }) => Ok(()),
            Ok(PutAnswer::Refused(refusal)) => Err(JobRecordError::Refused(refusal)),
            Err(error) => Err(JobRecordError::Failed(error)),
        }
    }
}

const PROGRESS: &[u8] = b"part ";
const DONE: &[u8] = b"done ";

/// Reads the value of a job's resource.
fn part_of(value: &[u8]) -> Result<Part, String> {
    if let Some(progress) = value.strip_prefix(PROGRESS) {
        return Ok(Part::Progress(progress.to_vec()));
    }
    if let Some(result) = value.strip_prefix(DONE) {
        return Ok(Part::Done(result.to_vec()));
    }
    let begin = String::from_utf8_lossy(&value[..value.len().min(20)]).into_owned();
    Err(format!(
        "the value begins with {begin:?}, and not with `part` or `done`: let nothing else write to it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_progress_or_a_result() {
        assert_eq!(part_of(b"part 2 of 3"), Ok(Part::Progress(b"2 of 3".to_vec())));
        assert_eq!(part_of(b"done "), Ok(Part::Done(vec![])));
        for other in [&b""[..], b"done", b"undone x", b"2"] {
            assert!(part_of(other).is_err(), "{other:?}");
        }
    }
}
