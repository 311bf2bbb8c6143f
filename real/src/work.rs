//! The worker on live servers: contenders that acquire a lock, work, write to the resource and release.
//!
//! Each contender is as a process of its own: a thread with its own runtime, its own connections and its own name.
#![allow(clippy::disallowed_methods, reason = "each contender has a thread of its own")]

use std::io;
use std::thread;
use std::time::Duration;

use dlock::{AnyBackend, Backend, KeyError, Lock, LockKey, Options, OptionsError, Runtime};
use resource::client::Client;
use resource::worker::{Ending, Job, Reading, Round, RoundError, Worker};
use tokio::runtime::{Builder, Handle};

use crate::history::speak_as;
use crate::pause::Pause;
use crate::runtime::TokioRuntime;
use crate::systems::{self, System, SystemError};

/// What the contenders of one command do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the history calls them: a single one by this name, several `NAME-1` and so on.
    pub name: String,
    /// The lock server.
    pub system: System,
    /// Its addresses.
    pub servers: Vec<String>,
    /// The address of the resource.
    pub resource: String,
    /// The TTL of a lease.
    pub ttl: Duration,
    /// How long a contender works before it writes.
    pub work: Duration,
    /// How it pauses.
    pub pause: Pause,
    /// How many there are.
    pub contenders: u64,
    /// The name of the keys.
    pub key: String,
    /// How many keys there are: contender `i` uses key `i` modulo so many.
    pub keys: u64,
    /// Whether each begins with a read that claims the resource by its token.
    pub claim: bool,
    /// Whether it checks that its lease is still valid before it writes.
    pub check: bool,
    /// Renews the lease beside the work, for so long at most.
    pub renew: Option<Duration>,
    /// How many rounds each does.
    pub rounds: u64,
    /// How long it rests between two rounds. Without rest, a lock that does not queue may be got by the same one again
    /// and again.
    pub rest: Duration,
    /// How long it waits for the lock.
    pub acquire_timeout: Duration,
    /// How long it asks for an answer before it sleeps until it comes, see [`TokioRuntime::polling_busily`].
    pub busy_poll: Duration,
}

/// What a round came to.
#[derive(Debug)]
pub struct Done {
    /// Whose it was.
    pub contender: String,
    /// The lock, and the resource.
    pub key: String,
    /// The round, or why there was none.
    pub round: Result<Round, RoundError>,
}

/// A plan that can't be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The keys' name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The TTL.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The servers.
    #[error(transparent)]
    System(#[from] SystemError),
    /// No contenders, or no keys.
    #[error("there is nobody to contend, or nothing to contend for: give --contenders and --keys at least 1")]
    Nobody,
    /// No thread or no runtime.
    #[error("a contender could not be started: {0}; lower --contenders or raise the limits of this user")]
    Start(#[from] io::Error),
}

/// Does all rounds of all contenders, and tells each as it ends.
///
/// # Errors
///
/// [`PlanError`]; a round that fails is told and is no error.
pub fn carry_out(plan: &Plan, tell: impl Fn(Done) + Sync) -> Result<(), PlanError> {
    if plan.contenders == 0 || plan.keys == 0 {
        return Err(PlanError::Nobody);
    }
    thread::scope(|scope| {
        let start = |number| {
            thread::Builder::new().spawn_scoped(scope, {
                let tell = &tell;
                move || contend(plan, number, tell)
            })
        };
        let contenders = (0..plan.contenders).map(start).collect::<Result<Vec<_>, _>>()?;
        contenders.into_iter().try_for_each(|contender| match contender.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn contend(plan: &Plan, number: u64, tell: &impl Fn(Done)) -> Result<(), PlanError> {
    let name = if plan.contenders == 1 { plan.name.clone() } else { format!("{}-{}", plan.name, number + 1) };
    speak_as(&name);
    let key = LockKey::new(&plan.key, &(number % plan.keys).to_string())?;
    let executor = Builder::new_current_thread().enable_all().build()?;
    executor.block_on(async {
        let runtime = TokioRuntime::new(Handle::current()).polling_busily(plan.busy_poll);
        let contender = Contender { plan, name, key, tell };
        let backend = systems::backend(plan.system, &plan.servers, plan.ttl, runtime)?;
        contender.run(backend).await
    })
}

struct Contender<'a, T> {
    plan: &'a Plan,
    name: String,
    key: LockKey,
    tell: &'a T,
}

impl<T: Fn(Done)> Contender<'_, T> {
    async fn run(self, backend: AnyBackend<TokioRuntime>) -> Result<(), PlanError> {
        let Self { plan, name, key, tell } = self;
        let runtime = backend.runtime().clone();
        let client = Client::new(runtime.clone(), &plan.resource);
        let mut options = Options::new(plan.ttl);
        options.instance = Some(name.clone());
        let request_timeout = options.request_timeout;
        let lock = Lock::new(backend, options)?;
        let worker = Worker::new(lock.clone(), client, plan.pause);
        let job = job(plan, key.clone());
        for _ in 0..plan.rounds {
            let round = worker.round(&job).await;
            tell(Done { contender: name.clone(), key: key.name().to_owned(), round });
            if !plan.rest.is_zero() {
                runtime.sleep_until(runtime.now() + plan.rest).await;
            }
        }
        // What was given up is released in the background, which ends with this runtime.
        lock.settled(runtime.now() + request_timeout).await;
        Ok(())
    }
}

fn job(plan: &Plan, key: LockKey) -> Job {
    let mut job = Job::new(key, plan.work);
    job.acquire_timeout = plan.acquire_timeout;
    job.check = plan.check;
    job.renew = plan.renew;
    job.reading = if plan.claim { Reading::Fenced } else { Reading::None };
    job
}

impl Done {
    /// One line for people: `a: account:0 token 7: done, released`.
    pub fn line(&self) -> String {
        let Self { contender, key, round } = self;
        match round {
            Err(error) => format!("{contender}: {key}: {error}"),
            Ok(Round { token, ending, released }) => {
                let release = match released {
                    None => "left to its TTL".to_owned(),
                    Some(Ok(dlock::Released::Done)) => "released".to_owned(),
                    Some(Ok(dlock::Released::NotOwner)) => "the lock was no longer its own".to_owned(),
                    Some(Err(error)) => error.to_string(),
                };
                format!("{contender}: {key} token {token}: {}; {release}", explain(*ending))
            }
        }
    }
}

const fn explain(ending: Ending) -> &'static str {
    match ending {
        Ending::Done => "written",
        Ending::Expired => "not written, the lease was no longer valid",
        Ending::Lost => "not written, the lease was lost",
        Ending::Refused => "refused, 409 stale fencing token",
        Ending::Unanswered => {
            "no answer of the resource, perhaps written; check that it runs where --resource says"
        }
    }
}
