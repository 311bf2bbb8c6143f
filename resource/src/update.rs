//! A read-modify-write without a lock: read, compute, write on the condition that nothing has been written
//! since, and start again if something has.
//!
//! It needs no lock server, no clock and no token, and no pause can make it overwrite a write that it has not
//! seen. It costs wasted work, which grows with the contention: a lock makes others wait, this makes them
//! repeat. It guards one resource, and only what the resource itself stores.
//!
//! Source: the conditional update of a database row, Computing Series, part 018, section 22; Kung and
//! Robinson, "On Optimistic Methods for Concurrency Control" (1981).

use std::time::Duration;

use bytes::Bytes;
use dlock::{Backoff, FencingToken, Owner, Runtime};
use dlock_runtime::{probes, reached};
use history::emit;

use crate::OwnerToken;
use crate::ResourceKey;
use crate::client::{Client, ClientError, Failure, PutAnswer, ReadAnswer, Repeated, Retry};
use crate::fence::{Beside, Guard, Refusal};
use crate::store::{Read, Snapshot, Write};
use crate::worker::{Pauses, Step};

/// The terms of an update.
#[derive(Clone, Debug)]
pub struct Update {
    /// The resource.
    pub key: ResourceKey,
    /// The duration of the work between the read and the write.
    pub work: Duration,
    /// The most attempts, each a read and a write; at least one is made.
    pub attempts: u32,
    /// The wait after a conflict, before the next read.
    pub backoff: Backoff,
    /// The retries of a write whose answer is lost; none if `None`.
    pub retry: Option<Retry>,
    /// The timeout for the answers of one attempt, retries included.
    pub answer_timeout: Duration,
}

impl Update {
    /// The default backoff. Its base is about the time that another client's read and write take.
    pub const BACKOFF: Backoff = Backoff { base: Duration::from_millis(20), max: Duration::from_secs(1) };

    /// Creates an update of `key` after the given time of work, tried up to 16 times.
    pub fn new(key: ResourceKey, work: Duration) -> Self {
        Self {
            key,
            work,
            attempts: 16,
            backoff: Self::BACKOFF,
            retry: Some(Retry::default()),
            answer_timeout: Duration::from_secs(30),
        }
    }
}

/// An update that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The version that it made.
    pub version: u64,
    /// The number of conditional writes; retries after a lost answer are not counted.
    pub attempts: u32,
}

/// An update that was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// Others were faster each time.
    #[error(
        "others wrote first in each of {attempts} attempts, last version {current}: try later, or use a lock"
    )]
    Contended {
        /// The number of attempts.
        attempts: u32,
        /// The version that the last attempt found.
        current: u64,
    },
    /// The resource is written by holders of a lock, and takes no write without a fencing token.
    #[error("the resource has seen fencing token {seen}: acquire the lock and write with its token")]
    Fenced {
        /// The highest token seen.
        seen: FencingToken,
    },
    /// The read or the write was not answered. After [`ClientError::Unknown`] the update may have been made:
    /// also if the answer to the write is lost and its repetition is refused, since another has written
    /// between the two.
    #[error(transparent)]
    Unanswered(#[from] ClientError),
}

impl UpdateError {
    /// Returns the value of the field `outcome` of the event `update_ended`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Contended { .. } => "contended",
            Self::Fenced { .. } => "fenced",
            Self::Unanswered(_) => "unanswered",
        }
    }
}

/// Makes updates: a client of the resource, and the pauses between its steps.
pub struct Updater<R: Runtime, P = ()> {
    runtime: R,
    client: Client<R>,
    pauses: P,
    instance: Box<str>,
}

/// The outcome of one attempt.
enum Attempt {
    Done { version: u64 },
    Conflict { current: u64 },
}

impl<R: Runtime, P: Pauses> Updater<R, P> {
    /// Creates an updater that writes through `client` and is called `instance` in histories.
    pub fn new(runtime: R, client: Client<R>, pauses: P, instance: &str) -> Self {
        Self { runtime, client, pauses, instance: instance.into() }
    }

    /// Replaces the value of the resource by what `compute` returns for it. `compute` is called once an
    /// attempt, so it must not have effects of its own.
    ///
    /// # Errors
    ///
    /// [`UpdateError`] says why no update was made.
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// use std::time::Duration;
    ///
    /// use bytes::Bytes;
    /// use resource::ResourceKey;
    /// use resource::store::Snapshot;
    /// use resource::update::{Update, Updater};
    ///
    /// /// Appends a character to the value.
    /// fn append(snapshot: &Snapshot) -> Bytes {
    ///     let value = snapshot.value.clone().unwrap_or_default();
    ///     [value.as_ref(), b"x"].concat().into()
    /// }
    ///
    /// let updater = Updater::new(runtime, client, (), "a");
    /// let update = Update::new(ResourceKey::new("orders:42")?, Duration::ZERO);
    /// let updated = updater.update(&update, append).await?;
    /// assert_eq!((updated.version, updated.attempts), (1, 1));
    /// # Ok(()) });
    /// ```
    pub async fn update(
        &self,
        update: &Update,
        compute: impl Fn(&Snapshot) -> Bytes + Send + Sync,
    ) -> Result<Updated, UpdateError> {
        // One name for all attempts: writes also differ by their versions.
        let owner = OwnerToken::try_from(&Owner::random(&self.runtime, Some(&self.instance))).ok();
        let result = self.attempts(update, owner.as_ref(), compute).await;
        let outcome = result.as_ref().map_or_else(UpdateError::as_str, |_| "done");
        emit!(UpdateEnded {
            key: update.key.id_hash(),
            owner: owner.as_ref().map(OwnerToken::prefix),
            outcome: outcome,
        });
        result
    }

    async fn attempts(
        &self,
        update: &Update,
        owner: Option<&OwnerToken>,
        compute: impl Fn(&Snapshot) -> Bytes + Send + Sync,
    ) -> Result<Updated, UpdateError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.attempt(update, owner, &compute).await? {
                Attempt::Done { version } => return Ok(Updated { version, attempts }),
                Attempt::Conflict { current } if attempts >= update.attempts => {
                    reached!(self.runtime, update_gave_up);
                    return Err(UpdateError::Contended { attempts, current });
                }
                Attempt::Conflict { .. } => {
                    reached!(self.runtime, update_repeated);
                    self.back_off(update, attempts - 1).await;
                }
            }
        }
    }

    /// Reads, works and writes once.
    async fn attempt(
        &self,
        update: &Update,
        owner: Option<&OwnerToken>,
        compute: impl Fn(&Snapshot) -> Bytes,
    ) -> Result<Attempt, UpdateError> {
        let deadline = self.runtime.now() + update.answer_timeout;
        let read = Read { claim: None, owner: owner.cloned() };
        let snapshot = match self.client.read_as(&update.key, &read, deadline).await? {
            ReadAnswer::Read(snapshot) => snapshot,
            // Unreachable: only a claim can be refused.
            ReadAnswer::Stale { seen, .. } | ReadAnswer::ForeignOwner { seen, .. } => {
                return Err(UpdateError::Fenced { seen });
            }
            ReadAnswer::Jump { seen, got, .. } => {
                return Err(UpdateError::Fenced { seen: seen.unwrap_or(got) });
            }
        };
        self.pause(update, Step::Read).await;
        if !update.work.is_zero() {
            self.runtime.sleep_until(self.runtime.now() + update.work).await;
        }
        self.pause(update, Step::Worked).await;
        let expected = snapshot.version;
        let guard = Guard::Version { expected };
        let write = Write { guard, owner: owner.cloned(), body: compute(&snapshot) };
        let answer = self.write(update, expected, &write).await?;
        self.pause(update, Step::Written).await;
        match answer {
            PutAnswer::Accepted { version } => Ok(Attempt::Done { version }),
            PutAnswer::Refused(Refusal::Conflict { current, .. }) => Ok(Attempt::Conflict { current }),
            PutAnswer::Refused(
                Refusal::Fenced { seen } | Refusal::Stale { seen, .. } | Refusal::ForeignOwner { seen, .. },
            ) => Err(UpdateError::Fenced { seen }),
            // Unreachable: a conditional write has no token.
            PutAnswer::Refused(Refusal::Jump { seen, got, .. }) => {
                Err(UpdateError::Fenced { seen: seen.unwrap_or(got) })
            }
        }
    }

    async fn write(&self, update: &Update, expected: u64, write: &Write) -> Result<PutAnswer, ClientError> {
        emit!(ConditionalSent {
            key: update.key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            expected: expected,
        });
        let deadline = self.runtime.now() + update.answer_timeout;
        let beside = Beside::NONE;
        let client = self.client.beside(&beside);
        let (answer, after_unknown) = match update.retry {
            Some(retry) => match client.put_repeatedly(&update.key, write, deadline, retry).await {
                Ok(Repeated { answer, after_unknown }) => (Ok(answer), after_unknown),
                Err(error) => (Err(error), false),
            },
            None => (client.put(&update.key, write, deadline).await, false),
        };
        emit!(ConditionalAnswered {
            key: update.key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            expected: expected,
            outcome: outcome(&answer),
        });
        if after_unknown && let Ok(PutAnswer::Refused(refusal)) = answer {
            // Beginning anew could make the update twice.
            let why = format!("its answer was lost, and its repetition refused as {}", refusal.as_str());
            return Err(ClientError::Unknown(Failure::Service(why)));
        }
        answer
    }

    /// Waits before the retry numbered `retry`, so that clients in conflict do not collide again.
    async fn back_off(&self, update: &Update, retry: u32) {
        let mut random = [0; 8];
        self.runtime.fill_random(&mut random);
        self.runtime.sleep_until(self.runtime.now() + update.backoff.wait(retry, random)).await;
    }

    async fn pause(&self, update: &Update, step: Step) {
        step.emit(&update.key.id_hash());
        self.pauses.at(step).await;
    }
}

/// Returns the value of the field `outcome`.
fn outcome(answer: &Result<PutAnswer, ClientError>) -> &'static str {
    match answer {
        Ok(PutAnswer::Accepted { .. }) => "accepted",
        Ok(PutAnswer::Refused(refusal)) => refusal.as_str(),
        Err(error) if error.is_timeout() => "timeout",
        Err(_) => "error",
    }
}

probes! {
    /// An update without a lock met a newer version, and began anew.
    reached update_repeated;
    /// An update without a lock gave up: others were faster each time.
    reached update_gave_up;
}
