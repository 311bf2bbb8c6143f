//! The worker on live servers: contenders that acquire a lock, work, write to the resource and release.
//!
//! Each contender is like a process: a thread with its own runtime, its own connections and its own name.
//! Asked to stop, it drops what it waits for, and releases its lock.
#![allow(clippy::disallowed_methods, reason = "each contender has a thread of its own, on real time")]

mod connector;
mod contender;
mod done;
mod tables;
mod tasks;

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use dlock::redis::Waiting;
use dlock::tls::TlsConnector;
use dlock::{KeyError, LockKey, OptionsError, Runtime, TokioRuntime};
use resource::Fencing;
use resource::bearer::BearerToken;
use resource::client::Client;
use resource::fence::cron::EveryError;
use tokio::runtime::{Builder, Handle};

pub(crate) use self::connector::Connector;
pub use self::connector::UrlError;
use self::contender::Contender;
pub use self::done::Done;
pub(crate) use self::tasks::{unix_micros, unix_ms};
use crate::pause::Pause;
use crate::place::Place;
use crate::primitive::Primitive;
use crate::recording::speak_as;
use crate::stop::Stop;
use crate::systems::SystemError;

/// The time within which the resource must accept a connection: it may have been started just before.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
/// The timeout of one connection, and the pause before the next.
const CONNECT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// The stack of a contender, in bytes, as large as that of a main thread: without optimisation the futures of
/// its rounds take more than the 2 MiB of other threads.
const STACK: usize = 8 << 20;

/// The work of a command's contenders. Without `Debug`: the URL of PostgreSQL may have a password.
#[derive(Clone)]
pub struct Plan {
    /// Their name in the history: a single contender has this name, several are `NAME-1` and so on.
    pub name: String,
    /// The lock servers; `None` if the jobs of a queue on PostgreSQL need none.
    pub place: Option<Place>,
    /// The URL of the PostgreSQL that keeps ticks and jobs; `None` if the resource does.
    pub postgres: Option<String>,
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
    /// The number of keys: contender `i` uses key `first_key + i` modulo this number, and those after it if
    /// it locks several.
    pub keys: u64,
    /// The number of the first contender's key.
    pub first_key: u64,
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
    /// A round locks more keys than there are.
    #[error("a round of --primitive several:{wanted} locks {wanted} keys: set --keys to at least {wanted}")]
    FewKeys {
        /// The keys of a round.
        wanted: u32,
    },
    /// The system does not have the primitive.
    #[error("--primitive: {0}")]
    Primitive(String),
    /// There are no lock servers.
    #[error("no lock servers: give --servers, or --primitive jobs with --record postgres")]
    NoServers,
    /// The URL of PostgreSQL is invalid.
    #[error("{0} (--postgres)")]
    Postgres(#[from] UrlError),
    /// The tables on PostgreSQL could not be created.
    #[error("no tables on PostgreSQL within {} s: {problem} (--postgres)", tables::WITHIN.as_secs())]
    Tables {
        /// The last error.
        problem: String,
    },
    /// The ticks of a cron are too close or too far.
    #[error(transparent)]
    Ticks(#[from] EveryError),
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
    /// Refuses a primitive that the servers or the keys do not allow.
    fn check_primitive(&self) -> Result<(), PlanError> {
        match &self.place {
            Some(place) => self.primitive.check(place.system).map_err(PlanError::Primitive)?,
            None if self.primitive == Primitive::Jobs && self.postgres.is_some() => {}
            None => return Err(PlanError::NoServers),
        }
        let wanted = self.primitive.keys();
        if u64::from(wanted) > self.keys { Err(PlanError::FewKeys { wanted }) } else { Ok(()) }
    }

    /// Returns the keys of a round that begins with the key of this number.
    fn keys_of(&self, first: u64) -> Result<Vec<LockKey>, KeyError> {
        let key = |next: u64| LockKey::new(&self.key, &(first.wrapping_add(next) % self.keys).to_string());
        (0..u64::from(self.primitive.keys())).map(key).collect()
    }

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
    plan.check_primitive()?;
    match &plan.postgres {
        None => reach_resource(plan, stop)?,
        Some(url) => tables::create(url, stop)?,
    }
    thread::scope(|scope| {
        let start = |number| {
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, {
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
    let keys = plan.keys_of(plan.first_key.wrapping_add(number))?;
    let executor = Builder::new_current_thread().enable_all().build()?;
    executor.block_on(async {
        let runtime = TokioRuntime::new(Handle::current()).polling_busily(plan.busy_poll);
        let contender = Contender { plan, name, keys, stop, on_round, runtime: runtime.clone() };
        match &plan.place {
            Some(place) => contender.run(place.backend(plan.ttl, Waiting::default(), runtime)?).await,
            None => contender.work_on_postgres().await,
        }
    })
}
