//! The worker: acquire, read, work, check, write, release, with an injectable pause at each step.
//!
//! It does what a careful user of the lock does: every write carries the grant's fencing token, and when the
//! resource refuses one, the worker stops.

mod elected;
mod nested;
mod pauses;
mod section;
mod sent;
mod several;

use std::time::Duration;

use bytes::Bytes;
use dlock::{
    AcquireError, Backend, Cap, FencingToken, Handle, Lock, LockKey, ReleaseError, Released, Runtime,
};
use dlock_runtime::{closest, probes, sometimes};

pub use self::nested::RoundOfNested;
pub use self::pauses::{Droppable, Pauses, Step};
pub(crate) use self::section::Section;
use self::sent::{Sent, judge};
pub use self::several::RoundOfSeveral;
use crate::OwnerToken;
use crate::client::{Client, ReadAnswer, Retry};
use crate::fence::{Beside, Guard, WriteSeq};
use crate::store::{Read, Write};
use crate::{KeyError, ResourceKey};

/// The worker's read of the resource before its writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Not at all.
    #[default]
    None,
    /// Without a token: an older grant's write may still arrive afterwards.
    Plain,
    /// With the token, which claims the resource for this grant.
    Fenced,
}

/// The work of one round.
#[derive(Clone, Debug)]
pub struct Job {
    /// The lock, and by its name the resource.
    pub key: LockKey,
    /// True if it acquires the lock for reading, and reads with its token where others write.
    pub shared: bool,
    /// The timeout of the acquire.
    pub acquire_timeout: Duration,
    /// The read before the work.
    pub reading: Reading,
    /// The duration of the work.
    pub work: Duration,
    /// True if it checks that its lease is still valid before each write.
    pub check: bool,
    /// Renews the lease beside the work, for at most this time; not at all if `None`.
    pub renew: Option<Duration>,
    /// The number of writes, or of a reader's reads. Several writes are numbered (`X-Fence-Seq`), a single
    /// write is plain.
    pub writes: u64,
    /// The retries of a write whose answer is lost; none if `None`.
    pub retry: Option<Retry>,
    /// The timeout for the resource's answers, retries included.
    pub answer_timeout: Duration,
    /// True if it releases the lock; else its TTL ends it.
    pub release: bool,
}

impl Job {
    /// Creates a job on `key`: one write after the given time of work, with a check of the lease before it,
    /// no read and no renewal.
    pub fn new(key: LockKey, work: Duration) -> Self {
        Self {
            key,
            shared: false,
            acquire_timeout: Duration::from_secs(30),
            reading: Reading::None,
            work,
            check: true,
            renew: None,
            writes: 1,
            retry: Some(Retry::default()),
            answer_timeout: Duration::from_secs(30),
            release: true,
        }
    }
}

/// The end of the critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All writes were accepted.
    Done,
    /// The lease was no longer valid before a write, which was not sent.
    Expired,
    /// The lease was lost while it was being renewed; the work was dropped.
    Lost,
    /// The resource refused the fencing token: a newer holder has been there.
    Refused,
    /// The resource refused the fencing token: it is so far above the highest seen that it can't come from
    /// the lock.
    Jumped,
    /// The resource did not answer; the last write may have been applied.
    Unanswered,
    /// The section was dropped before its end.
    Cancelled,
}

impl Ending {
    /// Returns the value of the field `outcome` of the event `section_left`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Expired => "expired",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Jumped => "jumped",
            Self::Unanswered => "unanswered",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The outcome of a round.
#[derive(Debug)]
pub struct Round {
    /// The grant's fencing token.
    pub token: FencingToken,
    /// The end of the critical section.
    pub ending: Ending,
    /// The result of the release; `None` if the job leaves the lock to its TTL, or if the release was
    /// dropped.
    pub released: Option<Result<Released, ReleaseError>>,
}

/// A round that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The lock was not acquired.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lock's name can't name a resource.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A worker: a lock, a client of the resource, and the pauses between its steps.
pub struct Worker<B: Backend, P = ()> {
    lock: Lock<B>,
    client: Client<B::Runtime>,
    pauses: P,
}

impl<B: Backend, P: Pauses> Worker<B, P> {
    /// Creates a worker that guards its writes through `client` with `lock`.
    pub fn new(lock: Lock<B>, client: Client<B::Runtime>, pauses: P) -> Self {
        Self { lock, client, pauses }
    }

    /// Runs one round: acquires the lock, does the job and releases it.
    ///
    /// # Errors
    ///
    /// [`RoundError`] if there was no grant.
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// use std::time::Duration;
    ///
    /// use dlock::LockKey;
    /// use resource::worker::{Ending, Job, Worker};
    ///
    /// # let lock = service::lock(&runtime);
    /// let worker = Worker::new(lock, client, ());
    /// let job = Job::new(LockKey::new("orders", "42")?, Duration::from_millis(1));
    /// let round = worker.round(&job).await?;
    /// assert_eq!((round.ending, round.token.as_u64()), (Ending::Done, 1));
    /// # Ok(()) });
    /// ```
    pub async fn round(&self, job: &Job) -> Result<Round, RoundError> {
        let handle = self.acquire(job).await?;
        self.hold(job, handle).await
    }

    /// Runs the first half of a round: acquires the lock.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    pub async fn acquire(&self, job: &Job) -> Result<Handle<B>, AcquireError> {
        let (request, deadline) = (self.lock.request(&job.key), self.now() + job.acquire_timeout);
        if job.shared { request.shared() } else { request }.acquire(deadline).await
    }

    /// Runs the second half: the critical section, and the release.
    ///
    /// # Errors
    ///
    /// [`RoundError::Key`] if the lock's name is too long for a resource.
    pub async fn hold(&self, job: &Job, handle: Handle<B>) -> Result<Round, RoundError> {
        let resource = ResourceKey::new(job.key.name())?;
        let token = handle.fence();
        let section = Section::enter(&job.key, handle.owner(), token);
        let ending = match job.renew {
            None => {
                let section = self.section(job, &resource, &handle);
                self.pauses.run(Droppable::Section, section).await.unwrap_or(Ending::Cancelled)
            }
            Some(cap) => {
                let renewed = handle.while_held(Cap(cap), self.section(job, &resource, &handle));
                self.renewed(renewed).await
            }
        };
        sometimes!(self.runtime(), write_left_out, ending == Ending::Expired);
        sometimes!(self.runtime(), work_dropped, ending == Ending::Lost);
        section.leave(ending.as_str());
        let released = if job.release {
            let released = self.pauses.run(Droppable::Release, handle.release()).await;
            self.pause(job, Step::Released).await;
            released
        } else {
            handle.leave();
            None
        };
        Ok(Round { token, ending, released })
    }

    /// Runs a section beside its renewals.
    async fn renewed<E: Send>(&self, section: impl Future<Output = Result<Ending, E>> + Send) -> Ending {
        match self.pauses.run(Droppable::Renewed, section).await {
            Some(Ok(ending)) => ending,
            Some(Err(_)) => Ending::Lost,
            None => Ending::Cancelled,
        }
    }

    async fn section(&self, job: &Job, resource: &ResourceKey, handle: &Handle<B>) -> Ending {
        self.pause(job, Step::Granted).await;
        let beside = beside(handle);
        if let Some(ending) = self.read_first(job, resource, handle, &beside).await {
            return ending;
        }
        if !job.work.is_zero() {
            self.runtime().sleep_until(self.now() + job.work).await;
        }
        self.pause(job, Step::Worked).await;
        for number in 1..=job.writes {
            if job.check {
                if !handle.is_valid() {
                    return Ending::Expired;
                }
                self.pause(job, Step::Checked).await;
            }
            let ending = match job.shared {
                true => self.read(job, resource, handle, &beside, Some(handle.fence())).await,
                false => self.write(job, resource, handle, &beside, number).await,
            };
            self.pause(job, Step::Written).await;
            if ending != Ending::Done {
                return ending;
            }
        }
        Ending::Done
    }

    /// Reads the resource before the work, if the job does. Returns the ending of the section if this was all
    /// of it.
    async fn read_first(
        &self,
        job: &Job,
        resource: &ResourceKey,
        handle: &Handle<B>,
        beside: &Beside,
    ) -> Option<Ending> {
        let claim = match job.reading {
            Reading::None => return None,
            Reading::Plain => None,
            Reading::Fenced => Some(handle.fence()),
        };
        let ending = self.read(job, resource, handle, beside, claim).await;
        self.pause(job, Step::Read).await;
        (ending != Ending::Done).then_some(ending)
    }

    /// Reads the resource, and claims it for the token `claim`.
    async fn read(
        &self,
        job: &Job,
        resource: &ResourceKey,
        handle: &Handle<B>,
        beside: &Beside,
        claim: Option<FencingToken>,
    ) -> Ending {
        let read = Read { claim, owner: OwnerToken::new(handle.owner().as_str()).ok() };
        let client = self.client.beside(beside);
        match client.read_as(resource, &read, self.now() + job.answer_timeout).await {
            Ok(ReadAnswer::Read(_)) => Ending::Done,
            Ok(ReadAnswer::Stale { .. } | ReadAnswer::ForeignOwner { .. }) => Ending::Refused,
            Ok(ReadAnswer::Jump { .. }) => Ending::Jumped,
            Err(_) => Ending::Unanswered,
        }
    }

    async fn write(
        &self,
        job: &Job,
        resource: &ResourceKey,
        handle: &Handle<B>,
        beside: &Beside,
        number: u64,
    ) -> Ending {
        let token = handle.fence();
        let seq = if job.writes > 1 { WriteSeq::new(number) } else { None };
        let write = Write {
            guard: Guard::Token { token, seq },
            owner: OwnerToken::new(handle.owner().as_str()).ok(),
            body: Bytes::from(format!("{} {token}.{number}", handle.owner().prefix())),
        };
        let sent = Sent { key: &job.key, owner: handle.owner(), token, seq };
        sometimes!(self.runtime(), expired_holder_writes, !handle.is_valid());
        sent.emit_sent();
        let (client, deadline) = (self.client.beside(beside), self.now() + job.answer_timeout);
        let answer = match job.retry {
            Some(retry) => client.put_with_retry(resource, &write, deadline, retry).await,
            None => client.put(resource, &write, deadline).await,
        };
        let (ending, outcome) = judge(&answer);
        let left = || Some(handle.remaining().as_nanos() as u64).filter(|left| *left > 0);
        sometimes!(self.runtime(), accepted_after_expiry, ending == Ending::Done && left().is_none());
        closest!(self.runtime(), landed_before_expiry_ns, left().unwrap_or(u64::MAX));
        sent.emit_answered(outcome);
        ending
    }

    async fn pause(&self, job: &Job, step: Step) {
        step.emit(job.key.id_hash());
        self.pauses.at(step).await;
    }

    fn runtime(&self) -> &B::Runtime {
        self.lock.backend().runtime()
    }

    fn now(&self) -> dlock::Instant {
        self.runtime().now()
    }
}

/// Returns the other permits that were live at the grant; none for a mutex.
fn beside<B: Backend>(handle: &Handle<B>) -> Beside {
    // A lock has at most as many permits as a set may have tokens.
    Beside::new(handle.beside().iter().copied()).unwrap_or_default()
}

probes! {
    /// A worker sends a write although its lease is over.
    sometimes expired_holder_writes;
    /// A write was accepted, and its writer's lease was over when the answer arrived.
    sometimes accepted_after_expiry;
    /// How long before the end of the lease a write was answered, in nanoseconds.
    closest landed_before_expiry_ns;
    /// A worker looked at its lease before a write, and left the write out.
    sometimes write_left_out;
    /// The work was dropped in the middle, since the lease was lost.
    sometimes work_dropped;
}
