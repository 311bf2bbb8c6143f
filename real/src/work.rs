//! The worker on live servers: contenders that acquire a lock, work, write to the resource and release.
//!
//! Each contender is like a process: a thread with its own runtime, its own connections and its own name.
//! Asked to stop, it drops what it waits for, and releases its lock.
#![allow(clippy::disallowed_methods, reason = "each contender has a thread of its own, on real time")]

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::pin;
use std::thread;
use std::time::{Duration, Instant};

use dlock::election::Election;
use dlock::redis::Waiting;
use dlock::tls::TlsConnector;
use dlock::{AcquireError, AnyBackend, Backend, KeyError, Lock, LockKey, Options, OptionsError, Runtime};
use futures_util::future::select;
use resource::Fencing;
use resource::bearer::BearerToken;
use resource::client::Client;
use resource::worker::{Ending, Job, Reading, Round, RoundError, Worker};
use tokio::runtime::{Builder, Handle};

use crate::pause::{Pause, Stoppable};
use crate::place::Place;
use crate::primitive::Primitive;
use crate::recording::speak_as;
use crate::stop::Stop;
use crate::systems::SystemError;
use dlock::TokioRuntime;

/// The time within which the resource must accept a connection: it may have been started just before.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
/// The timeout of one connection, and the pause before the next.
const CONNECT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// The shortest rest after a refusal by a full queue: the next round would be refused at once, too.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// The number of request timeouts for which a contender that stops waits for its releases.
const SETTLE_TIMEOUTS: u32 = 3;

/// The work of a command's contenders.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Their name in the history: a single contender has this name, several are `NAME-1` and so on.
    pub name: String,
    /// The lock servers.
    pub place: Place,
    /// The address of the resource.
    pub resource: String,
    /// Connects to the resource over TLS.
    pub resource_tls: Option<TlsConnector>,
    /// The bearer token for the resource.
    pub resource_token: Option<BearerToken>,
    /// The fencing that the resource must have; `None` for either.
    pub fencing: Option<Fencing>,
    /// The primitive.
    pub primitive: Primitive,
    /// The TTL of a lease.
    pub ttl: Duration,
    /// The duration of a contender's work before its write.
    pub work: Duration,
    /// The pause.
    pub pause: Pause,
    /// The number of contenders.
    pub contenders: u64,
    /// The prefix of the keys.
    pub key: String,
    /// The number of keys: contender `i` uses key `i` modulo this number.
    pub keys: u64,
    /// True if each begins with a read that claims the resource with its token.
    pub claim: bool,
    /// True if each checks that its lease is still valid before it writes.
    pub check: bool,
    /// Renews the lease while working, for at most this time.
    pub renew: Option<Duration>,
    /// The number of rounds of each.
    pub rounds: u64,
    /// The rest of each between two rounds. Without rest, one contender may acquire a lock without a queue
    /// again and again.
    pub rest: Duration,
    /// The timeout of an acquire.
    pub acquire_timeout: Duration,
    /// The time for which it polls for an answer before it sleeps: see [`TokioRuntime::polling_busily`].
    pub busy_poll: Duration,
}

/// The result of a round.
#[derive(Debug)]
pub struct Done {
    /// The contender.
    pub contender: String,
    /// The key of the lock and of the resource.
    pub key: String,
    /// The round, or the error.
    pub round: Result<Round, RoundError>,
}

/// Why a plan can't be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The prefix is no valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The TTL is invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The servers are invalid.
    #[error(transparent)]
    System(#[from] SystemError),
    /// There are no contenders, no keys, or no rounds.
    #[error("nothing to do: set --contenders, --keys and --rounds to at least 1")]
    Nobody,
    /// The resource accepts no connection.
    #[error(
        "no connection to the resource at {address} within {} s: {source}; start it with `real resource`, or \
         give its address to --resource",
        REACHED_WITHIN.as_secs()
    )]
    Resource {
        /// Its address.
        address: String,
        /// The last error.
        source: io::Error,
    },
    /// The resource and this client don't trust each other.
    #[error("no trusted connection to the resource at {address}: {reason}")]
    Distrust {
        /// Its address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The resource has fencing on, and the plan is for one that has it off, or the reverse.
    #[error(
        "the resource at {address} does not run with --fence {}: start it with `real resource --fence {0}`, or \
         leave out the worker's --fence",
        wanted.as_str()
    )]
    Fencing {
        /// Its address.
        address: String,
        /// The fencing that the plan is for.
        wanted: Fencing,
    },
    /// A thread or a runtime could not be started.
    #[error(
        "a contender could not be started: {0}; lower --contenders or raise this user's limits (ulimit -u)"
    )]
    Start(#[from] io::Error),
}

impl Plan {
    /// Returns a client of the resource.
    fn client(&self, runtime: TokioRuntime) -> Client<TokioRuntime> {
        let client = match &self.resource_tls {
            None => Client::new(runtime, &self.resource),
            Some(tls) => Client::over_tls(runtime, &self.resource, tls.clone()),
        };
        match &self.resource_token {
            None => client,
            Some(token) => client.with_bearer(token.clone()),
        }
    }
}

/// Runs all rounds of all contenders and calls `on_round` with each result. Asked to stop, each contender
/// drops its work, releases its lock and ends.
///
/// # Errors
///
/// [`PlanError`]. A failed round is reported and is not an error.
pub fn carry_out(plan: &Plan, stop: &Stop, on_round: impl Fn(Done) + Sync) -> Result<(), PlanError> {
    if plan.contenders == 0 || plan.keys == 0 || plan.rounds == 0 {
        return Err(PlanError::Nobody);
    }
    reach_resource(plan, stop)?;
    thread::scope(|scope| {
        let start = |number| {
            thread::Builder::new().spawn_scoped(scope, {
                let on_round = &on_round;
                move || contend(plan, number, stop, on_round)
            })
        };
        let contenders = (0..plan.contenders).map(start).collect::<Result<Vec<_>, _>>()?;
        contenders.into_iter().try_for_each(|contender| match contender.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Waits until the resource accepts a connection. Without it every write would fail, each after a long wait.
fn reach_resource(plan: &Plan, stop: &Stop) -> Result<(), PlanError> {
    let (address, begun) = (&plan.resource, Instant::now());
    let connect = || {
        let mut failure = io::Error::other("its name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(_) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    };
    while let Err(source) = connect() {
        if begun.elapsed() >= REACHED_WITHIN {
            return Err(PlanError::Resource { address: address.clone(), source });
        }
        if stop.block(PAUSE) {
            return Ok(());
        }
    }
    if plan.resource_tls.is_none() && plan.resource_token.is_none() && plan.fencing.is_none() {
        return Ok(());
    }
    match (ask_resource(plan)?, plan.fencing) {
        (fencing, Some(wanted)) if fencing != wanted => {
            Err(PlanError::Fencing { address: address.clone(), wanted })
        }
        _ => Ok(()),
    }
}

/// Asks the resource for its fencing. Both sides may also refuse the other's certificate, and a server does
/// so only after the handshake; it may refuse the bearer token, too.
fn ask_resource(plan: &Plan) -> Result<Fencing, PlanError> {
    let executor = Builder::new_current_thread().enable_all().build()?;
    let fencing = executor.block_on(async {
        let runtime = TokioRuntime::new(Handle::current());
        let deadline = runtime.now() + REACHED_WITHIN;
        plan.client(runtime).fencing(deadline).await.map_err(|error| error.to_string())
    });
    let address = plan.resource.clone();
    fencing.map_err(|reason| PlanError::Distrust { address, reason })
}

fn contend(plan: &Plan, number: u64, stop: &Stop, on_round: &impl Fn(Done)) -> Result<(), PlanError> {
    let name = if plan.contenders == 1 { plan.name.clone() } else { format!("{}-{}", plan.name, number + 1) };
    speak_as(&name);
    let key = LockKey::new(&plan.key, &(number % plan.keys).to_string())?;
    let executor = Builder::new_current_thread().enable_all().build()?;
    executor.block_on(async {
        let runtime = TokioRuntime::new(Handle::current()).polling_busily(plan.busy_poll);
        let contender = Contender { plan, name, key, stop, on_round };
        let backend = plan.place.backend(plan.ttl, Waiting::default(), runtime)?;
        contender.run(backend).await
    })
}

struct Contender<'a, T> {
    plan: &'a Plan,
    name: String,
    key: LockKey,
    stop: &'a Stop,
    on_round: &'a T,
}

impl<T: Fn(Done)> Contender<'_, T> {
    async fn run(self, backend: AnyBackend<TokioRuntime>) -> Result<(), PlanError> {
        let Self { plan, name, key, stop, on_round } = self;
        let runtime = backend.runtime().clone();
        let client = plan.client(runtime.clone());
        let mut options = Options::new(plan.ttl);
        options.instance = Some(name.clone());
        plan.primitive.apply(&mut options);
        let request_timeout = options.request_timeout;
        let lock = Lock::new(backend, options)?;
        let pauses = Stoppable { pause: plan.pause, stop: stop.clone() };
        let worker = Worker::new(lock.clone(), client, pauses);
        let observed = job(plan, key.clone());
        let mut job = observed.clone();
        let election = match plan.primitive {
            Primitive::Election => Some(worker.election(&job)?),
            _ => None,
        };
        let rounds = async {
            for round in 0..plan.rounds {
                job.shared = plan.primitive.reads(round);
                // Asked to stop, it drops an acquire, which then releases in the background; once it holds
                // the lock it drops the section, and releases.
                let Some(round) = one_round(&worker, election.as_ref(), &job, stop).await else { break };
                let refused = matches!(round, Err(RoundError::Acquire(AcquireError::QueueFull { .. })));
                let rest = if refused { plan.rest.max(AFTER_REFUSAL) } else { plan.rest };
                on_round(Done { contender: name.clone(), key: key.name().to_owned(), round });
                if !rest.is_zero() {
                    stop.or(runtime.sleep_until(runtime.now() + rest)).await;
                }
                if stop.is_asked() {
                    break;
                }
            }
        };
        match &election {
            None => rounds.await,
            // Each candidate observes as well.
            Some(election) => {
                select(pin!(rounds), pin!(observe(&worker, election, &observed))).await;
            }
        }
        // Background releases end with this runtime: wait for them.
        let timeouts = if stop.is_asked() { SETTLE_TIMEOUTS } else { 1 };
        lock.cleaned_up(runtime.now() + request_timeout * timeouts).await;
        Ok(())
    }
}

/// Acquires and works once, as the leader if there is an election; returns `None` if asked to stop first.
async fn one_round(
    worker: &Worker<AnyBackend<TokioRuntime>, Stoppable>,
    election: Option<&Election<AnyBackend<TokioRuntime>>>,
    job: &Job,
    stop: &Stop,
) -> Option<Result<Round, RoundError>> {
    let Some(election) = election else {
        return Some(match stop.or(worker.acquire(job)).await? {
            Ok(handle) => worker.hold(job, handle).await,
            Err(error) => Err(error.into()),
        });
    };
    Some(match stop.or(worker.campaign(election, job)).await? {
        Ok(leadership) => worker.lead(job, leadership).await,
        Err(error) => Err(error.into()),
    })
}

/// Observes until it is dropped, and records each term that it sees.
async fn observe(
    worker: &Worker<AnyBackend<TokioRuntime>, Stoppable>,
    election: &Election<AnyBackend<TokioRuntime>>,
    job: &Job,
) {
    let mut observer = election.observe();
    // An error that no repetition changes ends the campaigns, too, which report it.
    while worker.observe(&mut observer, job, dlock::Instant::MAX).await.is_ok() {}
    std::future::pending::<()>().await;
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
    /// Returns whether the round did not write although nobody asked it to stop.
    pub fn has_failed(&self) -> bool {
        let is_fine = |round: &Round| matches!(round.ending, Ending::Done | Ending::Cancelled);
        !self.round.as_ref().is_ok_and(is_fine)
    }

    /// Returns one line of text: `a: account:0 token 7: done, released`.
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
        Ending::Cancelled => "stopped, perhaps before its write",
        Ending::Refused => "refused, 409 stale fencing token",
        Ending::Jumped => {
            "refused, 422 fencing token too far above the highest seen; see --max-jump of resource"
        }
        Ending::Unanswered => {
            "no answer of the resource, perhaps written; check that it runs where --resource says"
        }
    }
}
