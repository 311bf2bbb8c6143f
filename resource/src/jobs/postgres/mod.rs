//! Workers of a job queue in PostgreSQL: a job ends in the transaction of the worker's own rows.

mod claim;
mod link;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use dlock::{Instant, LockKey, Owner, Runtime, timeout_at};
use futures_util::future::{Either, select};
use history::emit;
use serde_json::Value;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Transaction};

use self::claim::Claim;
use self::link::Link;
pub use self::link::PostgresJobsError;
use super::{Fate, Part, Task, Terms, Worked, job_key};
use crate::fence::{Failed, Job, JobQueue, WriteSeq};
use crate::postgres::Connector;
use crate::worker::{Droppable, Ending, Pauses, Step};

/// Returns the milliseconds until the next job may be claimed; null if none is left. $1 queue.
const LEFT: &str = "SELECT \
    (extract(epoch FROM min(coalesce(lease_until, run_at)) - clock_timestamp()) * 1000)::bigint \
    FROM queue_job WHERE queue = $1::text AND state IN ('ready', 'running')";

/// Returns the dead jobs. $1 queue.
const DEAD: &str = "SELECT id FROM queue_job WHERE queue = $1::text AND state = 'dead' ORDER BY id";

/// The statements that commit with a part of a job.
pub trait JobStatements: Send + Sync {
    /// Runs the statements of `part` in `transaction`; `owner` is the owner token of the claim.
    ///
    /// # Errors
    ///
    /// The client's error: the transaction is rolled back, and the part is not committed.
    fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        task: &Task,
        owner: &Owner,
        part: &Part,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Works on the jobs of a [`JobQueue`], one at a time. Each part of a job commits in one transaction with the
/// worker's own rows, on the condition that no other worker has claimed the job since. So it needs no other
/// record: a job whose commit was acknowledged is done, and never claimed again.
///
/// It opens a connection when it needs one, and another one after an error. Payload and progress are JSON in
/// the table: bytes that are none are stored as a text, and a text is returned as its bytes.
pub struct PostgresJobs<R: Runtime, S, P = ()> {
    link: Link<R>,
    key: LockKey,
    queue: JobQueue,
    terms: Terms,
    statements: S,
    pauses: P,
    /// The dead jobs that the history has already.
    dead: BTreeSet<u64>,
}

/// The answer to a claim.
struct Found {
    job: Option<Job>,
    /// The time until the next job may be claimed; `None` if none is left.
    left: Option<Duration>,
    /// The dead jobs, if there is no other.
    dead: Vec<u64>,
}

/// The reason why the parts of a job came to no end.
enum Stop {
    Work(String),
    Left(Ending),
}

impl<R: Runtime, S: JobStatements, P: Pauses> PostgresJobs<R, S, P> {
    /// Creates a worker on the queue `key`, whose parts commit with `statements`. `fence::migrate` creates
    /// its table.
    pub fn new(connector: Connector<R>, key: LockKey, terms: Terms, statements: S, pauses: P) -> Self {
        let queue = JobQueue {
            lease: terms.lease,
            attempts_max: u32::try_from(terms.attempts_max).unwrap_or(u32::MAX),
            backoff: terms.backoff,
            ..JobQueue::new(key.name())
        };
        let link = Link::new(connector);
        Self { link, key, queue, terms, statements, pauses, dead: BTreeSet::new() }
    }

    /// Stores a job, to be claimed after `delay` at the earliest, and emits that it is due. Returns its
    /// number.
    ///
    /// # Errors
    ///
    /// [`PostgresJobsError`]: the job may be stored. Another call stores another one.
    pub async fn enqueue(&mut self, payload: &[u8], delay: Duration) -> Result<u64, PostgresJobsError> {
        let (runtime, deadline) = self.call();
        let stored = timeout_at(&runtime, deadline, self.try_enqueue(payload, delay)).await;
        let id = self.link.settle(stored)?;
        emit!(TaskDue { key: self.key.id_hash(), task: id });
        Ok(id)
    }

    /// Looks at the queue once: claims a job, runs it and commits it. `work` does a part of a job and returns
    /// it, to be committed: after [`Part::Progress`] it is called again, with that progress. An error fails
    /// the attempt.
    ///
    /// # Errors
    ///
    /// [`PostgresJobsError`] if no job was claimed. All else is in [`Worked`].
    pub async fn work<F>(&mut self, work: impl FnMut(Task) -> F + Send) -> Result<Worked, PostgresJobsError>
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        // Refuses a name that is too long before any job is claimed.
        job_key(&self.key, u64::MAX)?;
        let key = self.key.id_hash().to_owned();
        self.pause(&key, Step::Asked).await;
        let owner = Owner::random(self.link.runtime(), self.terms.instance.as_deref());
        let (runtime, deadline) = self.call();
        let found = timeout_at(&runtime, deadline, self.try_claim(&owner)).await;
        let found = self.link.settle(found)?;
        match (found.job, found.left) {
            (Some(job), _) => {
                let id = job.id;
                let claim = Claim::new(&self.key, job, owner)?;
                Ok(Worked::Job { id, fate: self.run(&claim, work).await })
            }
            (None, Some(left)) => Ok(Worked::Wait { left }),
            (None, None) => {
                found.dead.into_iter().for_each(|job| self.emit_dead(job));
                emit!(TasksPassed { key: self.key.id_hash(), task: u64::MAX, outcome: "done" });
                Ok(Worked::Empty)
            }
        }
    }

    async fn run<F>(&mut self, claim: &Claim, work: impl FnMut(Task) -> F + Send) -> Fate
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        self.pause(&claim.resource, Step::Granted).await;
        // The claim has returned the progress: nothing else is to be read.
        self.pause(&claim.resource, Step::Read).await;
        claim.emit_started();
        let which = if self.terms.heartbeat { Droppable::Renewed } else { Droppable::Section };
        let pauses = self.pauses.clone();
        let fate = match pauses.run(which, self.parts(claim, work)).await {
            None => Fate::Left(Ending::Cancelled),
            Some(Ok(())) => Fate::Done,
            Some(Err(Stop::Left(ending))) => Fate::Left(ending),
            Some(Err(Stop::Work(error))) => self.fail(claim, error).await,
        };
        self.pause(&claim.resource, Step::Released).await;
        fate
    }

    /// Works part by part, and commits each.
    async fn parts<F>(&mut self, claim: &Claim, mut work: impl FnMut(Task) -> F + Send) -> Result<(), Stop>
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        let mut progress = claim.job.progress.as_ref().map(bytes_of);
        // The numbers begin with 1.
        for seq in (1..).map_while(WriteSeq::new) {
            let task = claim.task(progress.take());
            let done = self.beside_heartbeats(claim, work(task.clone())).await;
            let part = done.ok_or(Stop::Left(Ending::Lost))?.map_err(Stop::Work)?;
            self.pause(&claim.resource, Step::Worked).await;
            self.commit(claim, seq, &task, &part).await.map_err(Stop::Left)?;
            self.pause(&claim.resource, Step::Written).await;
            match part {
                Part::Progress(committed) => progress = Some(committed),
                Part::Done(_) => return Ok(()),
            }
        }
        Err(Stop::Work("the job has more parts than numbers".to_owned()))
    }

    /// Runs `work` beside the heartbeats; returns `None` if the claim is over before.
    async fn beside_heartbeats<T: Send>(
        &mut self,
        claim: &Claim,
        work: impl Future<Output = T> + Send,
    ) -> Option<T> {
        if !self.terms.heartbeat {
            return Some(work.await);
        }
        match select(pin!(work), pin!(self.heartbeats(claim))).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(((), _)) => None,
        }
    }

    /// Extends the lease every third of it. Ends if the claim is over.
    async fn heartbeats(&mut self, claim: &Claim) {
        let (runtime, third) = (self.link.runtime().clone(), self.terms.lease / 3);
        loop {
            runtime.sleep_until(runtime.now() + third).await;
            // A server that does not answer may answer the next time: until then the lease goes on, or the
            // commit decides.
            let beat = timeout_at(&runtime, runtime.now() + third, self.try_heartbeat(claim)).await;
            if self.link.settle(beat).is_err_and(|error| error.is_superseded()) {
                return;
            }
        }
    }

    async fn commit(&mut self, claim: &Claim, seq: WriteSeq, task: &Task, part: &Part) -> Result<(), Ending> {
        let is_last = matches!(part, Part::Done(_));
        claim.emit_sent(seq, is_last);
        let (runtime, deadline) = self.call();
        let answer = timeout_at(&runtime, deadline, self.try_commit(claim, task, part)).await;
        let (outcome, ended) = match self.link.settle(answer) {
            Ok(()) => ("done", Ok(())),
            Err(error) if error.is_superseded() => ("stale", Err(Ending::Refused)),
            Err(_) => ("unanswered", Err(Ending::Unanswered)),
        };
        claim.emit_answered(seq, is_last, outcome);
        ended
    }

    /// Gives a job back whose work has failed; after its last attempt it is dead.
    async fn fail(&mut self, claim: &Claim, error: String) -> Fate {
        let (runtime, deadline) = self.call();
        let failed = timeout_at(&runtime, deadline, self.try_fail(claim, &error)).await;
        let (outcome, fate) = match self.link.settle(failed) {
            Ok(Failed::Dead) => ("dead", Fate::Dead(error)),
            Ok(Failed::Retried { .. }) => ("failed", Fate::Failed(error)),
            Err(stop) if stop.is_superseded() => ("stale", Fate::Left(Ending::Refused)),
            Err(_) => ("unanswered", Fate::Left(Ending::Unanswered)),
        };
        claim.emit_ended(outcome);
        fate
    }

    async fn try_enqueue(&mut self, payload: &[u8], delay: Duration) -> Result<u64, PostgresJobsError> {
        let mut transaction = self.link.begin().await?;
        let id = self.queue.enqueue(&mut transaction, &value_of(payload), delay).await?;
        transaction.commit().await?;
        Ok(id)
    }

    async fn try_claim(&mut self, owner: &Owner) -> Result<Found, PostgresJobsError> {
        let mut transaction = self.link.begin().await?;
        let job = self.queue.claim(&mut transaction, owner.prefix()).await?;
        let mut found = Found { job, left: None, dead: Vec::new() };
        if found.job.is_none() {
            let queue = self.queue.name.as_str();
            let rows = transaction.query_typed(LEFT, &[(&queue, Type::TEXT)]).await?;
            let left: Option<i64> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
            // A job whose time has come is locked by another worker.
            found.left = left.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
            if left.is_none() {
                let rows = transaction.query_typed(DEAD, &[(&queue, Type::TEXT)]).await?;
                let numbers = rows.iter().map(|row| row.try_get::<_, i64>(0).map(i64::cast_unsigned));
                found.dead = numbers.collect::<Result<_, _>>()?;
            }
        }
        transaction.commit().await?;
        Ok(found)
    }

    async fn try_heartbeat(&mut self, claim: &Claim) -> Result<(), PostgresJobsError> {
        let mut transaction = self.link.begin().await?;
        self.queue.heartbeat(&mut transaction, &claim.job).await?;
        Ok(transaction.commit().await?)
    }

    async fn try_commit(&mut self, claim: &Claim, task: &Task, part: &Part) -> Result<(), PostgresJobsError> {
        let mut transaction = self.link.begin().await?;
        match part {
            Part::Progress(progress) => {
                self.queue.advance(&mut transaction, &claim.job, &value_of(progress)).await?;
            }
            Part::Done(_) => self.queue.complete(&mut transaction, &claim.job).await?,
        }
        self.statements.run(&mut transaction, task, &claim.owner, part).await?;
        Ok(transaction.commit().await?)
    }

    async fn try_fail(&mut self, claim: &Claim, error: &str) -> Result<Failed, PostgresJobsError> {
        let mut random = [0; 8];
        self.link.runtime().fill_random(&mut random);
        let mut transaction = self.link.begin().await?;
        let failed = self.queue.fail(&mut transaction, &claim.job, error, random).await?;
        transaction.commit().await?;
        Ok(failed)
    }

    /// Emits that a job is dead which no worker has said to be: its workers died in all its attempts.
    fn emit_dead(&mut self, job: u64) {
        if self.dead.insert(job) {
            let (key, owner) = (self.key.id_hash(), None::<&str>);
            emit!(TaskEnded { key: key, owner: owner, token: 0_u64, task: job, outcome: "dead" });
        }
    }

    /// Pauses at a step on the queue or the job with the hash `key`.
    async fn pause(&self, key: &str, step: Step) {
        step.emit(key);
        self.pauses.at(step).await;
    }

    /// Returns the runtime, and the deadline of a call that begins now.
    fn call(&self) -> (R, Instant) {
        let runtime = self.link.runtime().clone();
        let deadline = runtime.now() + self.terms.answer_timeout;
        (runtime, deadline)
    }
}

/// Returns bytes as the table stores them: as JSON, or as a text if they are none.
fn value_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
}

/// Returns the bytes of a value of the table.
fn bytes_of(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        value => value.to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_json_or_a_text() {
        for bytes in [&b"{\"to\":\"ada\"}"[..], b"to: ada", b"7", b""] {
            assert_eq!(bytes_of(&value_of(bytes)), bytes);
        }
    }
}
