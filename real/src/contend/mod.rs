//! The load: attempts at a fixed rate, however fast they are served. An attempt waits for a grant, for the
//! result of a flight, or for a job.
//!
//! The load is open: attempt `i` is due at `i / rate`, whether those before it were served or not, and its
//! latency counts from the time at which it was due. A lock that stalls is thus charged for every attempt due
//! in the meantime, not only for those already sent ("coordinated omission", Tene, "How NOT to Measure
//! Latency", 2015). The contenders are a pool: an attempt that finds none free waits for one, and that wait
//! counts. An attempt that fails, or is not served by the end, counts with the time that it has waited until
//! then, which is a lower limit.
//!
//! tokio's timer counts whole milliseconds, so an attempt begins up to 1 ms after it is due. Where the lock
//! is free, that is most of its latency: read the latency from the call there. The duration of the work is
//! exact (`timer.rs`).

mod arrivals;
mod book;
mod conditional;
mod error;
mod handover;
mod held;
mod report;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use dlock::redis::{Redis, Waiting};
use dlock::tls::Tls;
use dlock::{Backend, ConnectError, Lock, LockKey, Options, Runtime};
use serde::{Serialize, Serializer};
use tokio::task::JoinSet;

pub use self::arrivals::Arrivals;
use self::book::{Attempt, Book, Unserved};
pub(crate) use self::conditional::pool as postgres_pool;
pub use self::error::LoadError;
pub use self::handover::Handover;
use self::handover::{Handovers, Observed};
use self::held::Held;
pub use self::report::{Latencies, Report};
use self::tasks::{Tasks, own_resource};
use crate::acquire::{Acquire, WithToken, WithoutToken};
use crate::place::Place;
use crate::primitive::Primitive;
use crate::stop::Stop;
use crate::systems::{System, SystemError};
use crate::timer;
use crate::tokens::Tokens;
use crate::work::unix_micros;
use dlock::TokioRuntime;

/// The mechanism that decides which contender may work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// A lock.
    #[default]
    Lock,
    /// No lock: the version column of a row in PostgreSQL, read before the work and compared by the write
    /// after it.
    Version,
    /// No lock: the status column of a job in PostgreSQL, which a conditional update sets.
    Jobs,
}

/// The load to offer.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// The mechanism.
    pub arm: Arm,
    /// The lock servers. Without a lock, their only address is the URL of a PostgreSQL.
    #[serde(flatten, serialize_with = "as_system")]
    pub place: Place,
    /// The primitive.
    pub primitive: Primitive,
    /// The TTL of a lease.
    pub ttl: Duration,
    /// The time for which a lease is held.
    pub work: Duration,
    /// The time for which each holder stands still after its work, while its lease is not renewed.
    pub pause: Duration,
    /// The number of contenders, and so the largest number of attempts that wait or hold at a time.
    pub contenders: u64,
    /// The prefix of the keys.
    pub key: String,
    /// The number of keys; attempt `i` uses key `i` modulo this number.
    pub keys: u64,
    /// Attempts a second.
    pub rate: f64,
    /// How they arrive.
    pub arrivals: Arrivals,
    /// The time since it was due after which an attempt gives up; `None` if it waits until the end.
    pub patience: Option<Duration>,
    /// The duration of the load.
    pub lasts: Duration,
    /// True if waiters on a single Redis only poll, and are not woken by a release.
    pub polled: bool,
    /// True if the acquires demand a fencing token. Only the lock of a single Redis grants without one.
    pub fenced: bool,
}

/// Writes the system, and the source of its tokens if it is not the default.
fn as_system<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Named {
        system: System,
        #[serde(skip_serializing_if = "Tokens::is_default")]
        tokens: Tokens,
    }
    Named { system: place.system, tokens: place.tokens }.serialize(serializer)
}

/// More attempts than a machine serves in an hour.
const ATTEMPTS_MAX: f64 = 1e9;

/// Offers `load` and waits until it is over.
///
/// # Errors
///
/// [`LoadError`]. Failed attempts are counted, and are not errors.
pub async fn contend(load: Load, runtime: TokioRuntime) -> Result<Report, LoadError> {
    contend_until(load, runtime, Stop::default()).await
}

/// Offers `load` as [`contend`] does, until it is over or `stop` is asked: then the locks that are held are
/// released, and the report is of the attempts that were due by then.
///
/// # Errors
///
/// As [`contend`].
pub async fn contend_until(load: Load, runtime: TokioRuntime, stop: Stop) -> Result<Report, LoadError> {
    let zero = |zero: bool, what| if zero { Err(LoadError::Zero(what)) } else { Ok(()) };
    zero(load.contenders == 0, "--contenders")?;
    zero(load.keys == 0, "--keys")?;
    zero(load.lasts.is_zero(), "--for")?;
    if !(load.rate.is_finite() && load.rate >= 0.0) {
        return Err(LoadError::Rate(load.rate));
    }
    zero(load.rate == 0.0, "--rate")?;
    zero(load.patience.is_some_and(|patience| patience.is_zero()), "--patience")?;
    if !load.fenced && load.primitive.is_always_fenced() {
        return Err(LoadError::Fenced(load.primitive));
    }
    let wanted = load.primitive.keys();
    if u64::from(wanted) > load.keys {
        return Err(LoadError::FewKeys { wanted });
    }
    let attempts = (load.rate * load.lasts.as_secs_f64()).ceil();
    if attempts > ATTEMPTS_MAX {
        return Err(LoadError::TooMany(attempts));
    }
    // The value is whole and at most a billion.
    let offer = Offer { load, attempts: attempts as u64, stop };
    let Load { ttl, polled, ref place, .. } = offer.load;
    let place = place.clone();
    if offer.load.arm != Arm::Lock {
        if offer.load.primitive != Primitive::Mutex {
            let problem = format!("{} needs a lock: leave it out, or give --arm lock", offer.load.primitive);
            return Err(LoadError::Primitive(problem));
        }
        let [url] = place.addresses.as_slice() else { return Err(LoadError::NoPostgres) };
        return conditional::contend(offer, url, runtime).await;
    }
    offer.load.primitive.check(place.system).map_err(LoadError::Primitive)?;
    if offer.load.primitive == Primitive::Jobs {
        let tls = place.connector().map_err(|error| SystemError::from(ConnectError::from(error)))?;
        return match tls {
            None => offer.work_jobs(place.redis(runtime.clone())?, runtime).await,
            Some(tls) => offer.work_jobs(place.redis(Tls::new(runtime.clone(), tls))?, runtime).await,
        };
    }
    let waiting = if polled { Waiting::Polled } else { Waiting::Called };
    offer.run(place.backend(ttl, waiting, runtime)?).await
}

struct Offer {
    load: Load,
    /// The expected number of attempts: exact if they arrive evenly.
    attempts: u64,
    stop: Stop,
}

impl Offer {
    /// Returns `number`, or the number of attempts if that is less.
    fn at_most_attempts(&self, number: u64) -> u64 {
        match self.load.arrivals {
            Arrivals::Even => number.min(self.attempts),
            Arrivals::Random { .. } => number,
        }
    }

    async fn run<B: Backend<Runtime = TokioRuntime>>(self, backend: B) -> Result<Report, LoadError> {
        let runtime = backend.runtime().clone();
        let mut options = Options::new(self.load.ttl);
        self.load.primitive.apply(&mut options);
        let handovers = Handovers::default();
        let lock = Lock::new(Observed::new(backend, &handovers), options)?;
        warm_up(&lock, &self.load).await?;
        // A task needs a resource; a load whose leases are held writes nothing.
        let resource = match self.load.primitive.is_held() {
            true => String::new(),
            false => own_resource(&runtime).await?,
        };
        let book = Arc::new(Book::open(self, &runtime));
        let mut contenders = JoinSet::new();
        for _ in 0..book.offer.at_most_attempts(book.offer.load.contenders) {
            let (lock, book) = (lock.clone(), Arc::clone(&book));
            let Load { primitive, fenced, .. } = book.offer.load;
            let tasks = |book| Tasks { book, runtime: runtime.clone(), resource: resource.clone() };
            match primitive {
                Primitive::SingleFlight => contenders.spawn(tasks(book).fly(lock)),
                Primitive::Cron { every } => contenders.spawn(tasks(book).fire(lock, every)),
                _ if fenced => contenders.spawn(serve_attempts::<_, WithToken>(lock, book)),
                _ => contenders.spawn(serve_attempts::<_, WithoutToken>(lock, book)),
            };
        }
        all_ended(contenders).await?;
        // Attempts that were waiting release in the background what they may have been granted.
        lock.cleaned_up(runtime.now() + lock.options().request_timeout).await;
        let handovers = handovers.all().into_iter();
        let handovers = handovers.map(|handover| (book.since_start(handover.at), handover)).collect();
        Ok(Report { handovers, ..book.report()? })
    }

    /// Offers the load to a queue on Redis.
    async fn work_jobs<R: Runtime>(
        self,
        redis: Redis<R>,
        runtime: TokioRuntime,
    ) -> Result<Report, LoadError> {
        let resource = own_resource(&runtime).await?;
        // No other load has jobs of these numbers.
        let first = unix_micros();
        let book = Arc::new(Book::open(self, &runtime));
        let mut contenders = JoinSet::new();
        for _ in 0..book.offer.at_most_attempts(book.offer.load.contenders) {
            let (book, runtime) = (Arc::clone(&book), runtime.clone());
            let tasks = Tasks { book, runtime, resource: resource.clone() };
            contenders.spawn(tasks.work_jobs(redis.clone(), first));
        }
        all_ended(contenders).await?;
        book.report()
    }
}

/// Waits until all contenders have ended.
async fn all_ended(mut contenders: JoinSet<Result<(), LoadError>>) -> Result<(), LoadError> {
    while let Some(ended) = contenders.join_next().await {
        ended??;
    }
    Ok(())
}

/// Opens the connection and loads the scripts before the clock starts. An error is ignored: it recurs under
/// load and is counted there.
async fn warm_up<B: Backend>(lock: &Lock<B>, load: &Load) -> Result<(), LoadError> {
    let key = LockKey::new(&load.key, "warm-up")?;
    if let Ok(handle) = lock.try_acquire(&key).await {
        drop(handle.release().await);
    }
    Ok(())
}

async fn serve_attempts<B: Backend, A: Acquire<B>>(lock: Lock<B>, book: Arc<Book>) -> Result<(), LoadError> {
    let runtime = lock.backend().runtime().clone();
    let load = &book.offer.load;
    while let Some(attempt) = book.next(&runtime).await {
        let (called, deadline) = (runtime.now(), book.deadline(attempt));
        if called >= deadline {
            book.given_up(attempt, called);
            continue;
        }
        let acquire = Held::acquire::<A>(&lock, load, attempt.number, deadline);
        let held = match book.or_stop(&runtime, acquire).await {
            None => {
                book.given_up(attempt, runtime.now());
                continue;
            }
            Some(Ok(held)) => held,
            Some(Err(error)) => {
                let unserved = Unserved { attempt, called, deadline, error };
                book.not_served(&unserved, runtime.now(), lock.options().request_timeout);
                continue;
            }
        };
        book.granted(attempt, runtime.now(), called);
        book.or_stop(&runtime, timer::sleep(load.work + load.pause)).await;
        let before = runtime.now();
        if let Some(released) = held.release().await {
            book.released(released, runtime.now().saturating_since(before));
        }
    }
    Ok(())
}
