//! A cron under a lock: runs each tick of a schedule once. [`crate::fence::cron`] has the schedule and the
//! policy, and says what a cron does not promise.
//!
//! The lock is a prefilter, which keeps runners from working at once. The durable transition is the commit
//! at the guarded side, with the token: [`ResourceTicks`] commits to the resource by its client,
//! `PostgresTickRecord` (feature `postgres`) with your own statements in a transaction on PostgreSQL.

#[cfg(feature = "postgres")]
mod postgres;
mod resource;

use std::future::Future;
use std::time::Duration;

use dlock::{
    AcquireError, Backend, Cap, FencingToken, Handle, Lock, LockKey, ReleaseError, Released, Runtime,
};
use dlock_runtime::{probes, sometimes};
use history::emit;

#[cfg(feature = "postgres")]
pub use self::postgres::PostgresTickRecord;
pub use self::resource::ResourceTicks;
use crate::fence::cron::{Grant, Policy, Schedule, Seen, Tick, Ticks, TicksError};
use crate::fence::{Refusal, WriteSeq};
use crate::worker::{Droppable, Ending, Pauses, Section, Step};
use crate::{KeyError, OwnerToken, ResourceKey};

/// A cron: its name, its schedule, and the terms of a firing.
#[derive(Clone, Debug)]
pub struct Cron<S> {
    /// The lock, and by its name the resource.
    pub key: LockKey,
    /// The times of its ticks.
    pub schedule: S,
    /// The policy for late and missed ticks.
    pub policy: Policy,
    /// The timeout of the acquire. Runners that come while another one works wait for so long.
    pub acquire_timeout: Duration,
    /// The timeout of a claim and of a commit, retries included.
    pub answer_timeout: Duration,
    /// Renews the lease beside the work, for at most this time; not at all if `None`.
    pub renew: Option<Duration>,
    /// True if it checks that its lease is still valid before each commit.
    pub check: bool,
}

impl<S> Cron<S> {
    /// Creates a cron whose runners renew their leases for an hour at most, and wait 30 s for the lock and
    /// for answers.
    pub fn new(key: LockKey, schedule: S, policy: Policy) -> Self {
        Self {
            key,
            schedule,
            policy,
            acquire_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(30),
            renew: Some(Duration::from_secs(3600)),
            check: true,
        }
    }
}

/// The outcome of a firing.
#[derive(Debug)]
pub struct Fired {
    /// The grant's fencing token.
    pub token: FencingToken,
    /// The ticks that this firing committed, in their order.
    pub ran: Vec<Tick>,
    /// All ticks up to this one that are not done are skipped by the policy; `None` if none is.
    pub skipped: Option<Tick>,
    /// The end of the firing: [`Ending::Done`] if nothing is left to run.
    pub ending: Ending,
    /// The reason, if a claim or a commit failed.
    pub error: Option<String>,
    /// The result of the release; `None` if it was dropped.
    pub released: Option<Result<Released, ReleaseError>>,
}

/// A firing that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum FireError {
    /// The lock was not acquired. Another runner works, which runs the tick; or the lock server is away.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lock's name can't name a resource.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Runs the ticks of a cron: a lock, the guarded side, and the pauses between its steps.
pub struct Runner<B: Backend, T, S, P = ()> {
    lock: Lock<B>,
    ticks: T,
    cron: Cron<S>,
    pauses: P,
}

impl<B: Backend, T: Ticks, S: Schedule, P: Pauses> Runner<B, T, S, P> {
    /// Creates a runner of `cron`, whose ticks are committed at `ticks`.
    pub fn new(lock: Lock<B>, ticks: T, cron: Cron<S>, pauses: P) -> Self {
        Self { lock, ticks, cron, pauses }
    }

    /// Waits for the first tick after the time at which it is called, by the caller's clock, and returns it.
    /// `now_ms` returns milliseconds of Unix time. Reads the clock every second, since it may jump. `None` if
    /// the schedule has no more ticks.
    pub async fn next(&self, now_ms: impl Fn() -> u64 + Send) -> Option<Tick> {
        let tick = self.cron.schedule.next(now_ms())?;
        loop {
            let left = tick.as_u64().saturating_sub(now_ms());
            if left == 0 {
                return Some(tick);
            }
            let runtime = self.lock.backend().runtime();
            runtime.sleep_until(runtime.now() + Duration::from_millis(left.min(CLOCK_CHECK_MS))).await;
        }
    }

    /// Fires once: acquires the lock, runs the ticks that are due, and releases it. `now_ms` returns the
    /// caller's clock in milliseconds of Unix time. `work` does the work of a tick, and returns the result to
    /// be committed with it.
    ///
    /// # Errors
    ///
    /// [`FireError`] if there was no grant. All else is in [`Fired`].
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// use std::time::Duration;
    ///
    /// use dlock::LockKey;
    /// use fence::cron::{Every, Missed, Policy, Tick};
    /// use resource::cron::{Cron, ResourceTicks, Runner};
    /// # use resource::fence;
    ///
    /// # let lock = service::lock(&runtime);
    /// let hourly = Every::new(Duration::from_secs(3600), Duration::ZERO)?;
    /// let policy = Policy { late_max: Duration::from_secs(60), missed: Missed::Latest };
    /// let cron = Cron::new(LockKey::new("cron", "report")?, hourly, policy);
    /// let mut runner = Runner::new(lock, ResourceTicks::new(client), cron, ());
    /// // A minute past one o'clock by this clock; your own reads the time of day.
    /// let clock = || 3_660_000;
    /// let fired = runner.fire(clock, |tick| async move { format!("report of {tick}").into_bytes() }).await?;
    /// assert_eq!(fired.ran, [Tick::new(3_600_000)]);
    /// // Whoever fires next finds the tick done.
    /// let fired = runner.fire(clock, |_| async { Vec::new() }).await?;
    /// assert!(fired.ran.is_empty());
    /// # Ok(()) });
    /// ```
    pub async fn fire<F>(
        &mut self,
        now_ms: impl Fn() -> u64 + Send,
        work: impl FnMut(Tick) -> F + Send,
    ) -> Result<Fired, FireError>
    where
        F: Future<Output = Vec<u8>> + Send,
    {
        let handle = self.acquire().await?;
        self.run(handle, now_ms, work).await
    }

    /// Runs the first part of a firing: acquires the lock.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    pub async fn acquire(&self) -> Result<Handle<B>, AcquireError> {
        self.lock.acquire(&self.cron.key, self.now() + self.cron.acquire_timeout).await
    }

    /// Runs the rest of a firing: the ticks that are due, and the release.
    ///
    /// # Errors
    ///
    /// [`FireError::Key`] if the lock's name is too long for a resource.
    pub async fn run<F>(
        &mut self,
        handle: Handle<B>,
        now_ms: impl Fn() -> u64 + Send,
        work: impl FnMut(Tick) -> F + Send,
    ) -> Result<Fired, FireError>
    where
        F: Future<Output = Vec<u8>> + Send,
    {
        let (key, token) = (ResourceKey::new(self.cron.key.name())?, handle.fence());
        let owner = OwnerToken::new(handle.owner().as_str()).ok();
        let grant = Grant { key, token, owner };
        let section = Section::enter(&self.cron.key, handle.owner(), token);
        let fired = Fired {
            token,
            ran: Vec::new(),
            skipped: None,
            ending: Ending::Done,
            error: None,
            released: None,
        };
        let (renew, pauses) = (self.cron.renew, self.pauses.clone());
        let mut firing = Firing { runner: self, grant, handle: &handle, fired };
        let run = firing.run(now_ms, work);
        let ending = match renew {
            None => pauses.run(Droppable::Section, run).await,
            Some(cap) => {
                let renewed = pauses.run(Droppable::Renewed, handle.while_held(Cap(cap), run)).await;
                renewed.map(|ended| ended.unwrap_or(Ending::Lost))
            }
        };
        let mut fired = firing.fired;
        fired.ending = ending.unwrap_or(Ending::Cancelled);
        section.leave(fired.ending.as_str());
        fired.released = pauses.run(Droppable::Release, handle.release()).await;
        self.pause(Step::Released).await;
        Ok(fired)
    }

    async fn pause(&self, step: Step) {
        step.emit(self.cron.key.id_hash());
        self.pauses.at(step).await;
    }

    fn now(&self) -> dlock::Instant {
        self.lock.backend().runtime().now()
    }
}

/// The longest sleep between two looks at the clock.
const CLOCK_CHECK_MS: u64 = 1000;

/// A firing under its lease.
struct Firing<'a, B: Backend, T, S, P> {
    runner: &'a mut Runner<B, T, S, P>,
    grant: Grant,
    handle: &'a Handle<B>,
    fired: Fired,
}

impl<B: Backend, T: Ticks, S: Schedule, P: Pauses> Firing<'_, B, T, S, P> {
    async fn run<F>(&mut self, now_ms: impl Fn() -> u64 + Send, work: impl FnMut(Tick) -> F + Send) -> Ending
    where
        F: Future<Output = Vec<u8>> + Send,
    {
        self.runner.pause(Step::Granted).await;
        let deadline = self.runner.now() + self.runner.cron.answer_timeout;
        let claimed = self.runner.ticks.claim(&self.grant, deadline).await;
        self.runner.pause(Step::Read).await;
        let seen = match claimed {
            Ok(seen) => seen,
            Err(error) => return self.fail(&error),
        };
        self.run_due(seen, now_ms, work).await
    }

    async fn run_due<F>(
        &mut self,
        seen: Seen,
        now_ms: impl Fn() -> u64 + Send,
        mut work: impl FnMut(Tick) -> F + Send,
    ) -> Ending
    where
        F: Future<Output = Vec<u8>> + Send,
    {
        let cron = &self.runner.cron;
        let due = cron.policy.due(&cron.schedule, seen.last, seen.now_ms.unwrap_or_else(now_ms));
        self.passed(seen.last, "done");
        self.passed(due.skipped, "skipped");
        self.fired.skipped = due.skipped;
        sometimes!(self.runner.lock.backend().runtime(), ticks_skipped, due.skipped.is_some());
        let key = self.runner.cron.key.id_hash().to_owned();
        due.run.iter().for_each(|tick| emit!(TaskDue { key: key.as_str(), task: tick.as_u64() }));
        for (number, tick) in (1..).zip(due.run) {
            // A pause since the claim may have outlived the lease: another runner does this work, then.
            if self.runner.cron.check && !self.handle.is_valid() {
                return Ending::Expired;
            }
            self.emit_started(tick);
            let result = work(tick).await;
            self.runner.pause(Step::Worked).await;
            if self.runner.cron.check {
                if !self.handle.is_valid() {
                    return Ending::Expired;
                }
                self.runner.pause(Step::Checked).await;
            }
            let ending = self.commit(number, tick, &result).await;
            self.runner.pause(Step::Written).await;
            if ending != Ending::Done {
                return ending;
            }
        }
        Ending::Done
    }

    async fn commit(&mut self, number: u64, tick: Tick, result: &[u8]) -> Ending {
        // The numbers begin with 1, and few ticks run at once.
        let Some(seq) = WriteSeq::new(number) else { return Ending::Expired };
        self.emit_sent(tick, seq);
        let deadline = self.runner.now() + self.runner.cron.answer_timeout;
        let answer = self.runner.ticks.commit(&self.grant, seq, tick, result, deadline).await;
        let outcome = match &answer {
            Ok(()) => "done",
            Err(TicksError::Done(_)) => "done before",
            Err(TicksError::Refused(refusal)) => refusal.as_str(),
            Err(TicksError::Corrupt(_) | TicksError::Failed(_)) => "unanswered",
        };
        self.emit_answered(tick, seq, outcome);
        match answer {
            Ok(()) => {
                self.fired.ran.push(tick);
                Ending::Done
            }
            // A retry of a commit whose answer was lost, or another runner was faster: the next tick follows.
            Err(TicksError::Done(_)) => Ending::Done,
            Err(error) => {
                sometimes!(self.runner.lock.backend().runtime(), tick_refused, is_refused(&error));
                self.fail(&error)
            }
        }
    }

    /// Keeps the error for the caller, and returns the end of the firing.
    fn fail(&mut self, error: &TicksError<T::Error>) -> Ending {
        self.fired.error = Some(error.to_string());
        match error {
            TicksError::Refused(Refusal::Jump { .. }) => Ending::Jumped,
            TicksError::Refused(_) | TicksError::Done(_) => Ending::Refused,
            TicksError::Corrupt(_) | TicksError::Failed(_) => Ending::Unanswered,
        }
    }

    fn passed(&self, last: Option<Tick>, outcome: &str) {
        if let Some(last) = last {
            let key = self.runner.cron.key.id_hash();
            emit!(TasksPassed { key: key, task: last.as_u64(), outcome: outcome });
        }
    }

    fn emit_started(&self, tick: Tick) {
        emit!(TaskStarted {
            key: self.runner.cron.key.id_hash(),
            owner: self.handle.owner().prefix(),
            token: self.grant.token.as_u64(),
            task: tick.as_u64(),
        });
    }

    fn emit_sent(&self, tick: Tick, seq: WriteSeq) {
        let (key, owner) = (self.runner.cron.key.id_hash(), self.handle.owner().prefix());
        let (token, seq) = (self.grant.token.as_u64(), seq.as_u64());
        emit!(TaskSent { key: key, owner: owner, token: token, seq: seq, task: tick.as_u64() });
        emit!(WriteSent { key: key, owner: owner, token: token, seq: seq });
    }

    fn emit_answered(&self, tick: Tick, seq: WriteSeq, outcome: &str) {
        let (key, owner) = (self.runner.cron.key.id_hash(), self.handle.owner().prefix());
        let (token, task, seq) = (self.grant.token.as_u64(), tick.as_u64(), seq.as_u64());
        let answer = if outcome == "done" { "accepted" } else { outcome };
        emit!(WriteAnswered { key: key, owner: owner, token: token, seq: seq, outcome: answer });
        emit!(TaskEnded { key: key, owner: owner, token: token, task: task, outcome: outcome });
    }
}

const fn is_refused<E>(error: &TicksError<E>) -> bool {
    matches!(error, TicksError::Refused(_))
}

probes! {
    /// The policy skipped ticks that nobody had run.
    sometimes ticks_skipped;
    /// The commit of a tick was refused: a newer holder runs the ticks.
    sometimes tick_refused;
}
