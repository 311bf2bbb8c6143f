//! Fills an etcd with locks, each under a lease of its own or all under one.

use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use dlock::{Instant, KeyError, LockKey, Runtime};
use etcd_client::{Client, Error, LeaseGrantOptions, PutOptions, Txn, TxnOp};
use futures_util::future::try_join_all;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::FILLED;
use dlock::TokioRuntime;

/// Batches in flight: etcd syncs concurrent requests to disk together.
const AT_ONCE: u64 = 8;
/// The locks that one transaction puts: etcd takes at most 128 operations.
const BATCH: u64 = 32;
/// Attempts for a request that etcd is too busy for, and the wait before the second; it doubles with each
/// further one.
pub(crate) const ATTEMPTS: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// gRPC's code for a busy server.
const UNAVAILABLE: i32 = 14;
/// The shortest lease: etcd counts in whole seconds.
const TTL_MIN: Duration = Duration::from_secs(1);

/// The order to fill an etcd.
#[derive(Clone, Debug, Serialize)]
pub struct EtcdFill {
    /// The addresses of its members.
    pub servers: Vec<String>,
    /// The number of locks.
    pub keys: u64,
    /// The prefix of the keys: NAME:0 and so on.
    pub key: String,
    /// The seed of the owner tokens.
    pub seed: u64,
    /// The TTL of the leases.
    pub ttl: Duration,
    /// The sharing of leases between locks.
    pub leases: Leases,
}

/// The sharing of leases between locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leases {
    /// A lease for each lock, as with etcd's Lock service and a session for each claim.
    Each,
    /// A lease for each lock, granted for what is left of the TTL since the fill began, in whole seconds: all
    /// end within about one second.
    Together,
    /// One lease for all locks, as a client of [`dlock::etcd`] has.
    Shared,
}

/// The result.
#[derive(Debug, Serialize)]
pub struct EtcdFilled {
    /// The order.
    pub fill: EtcdFill,
    /// The number of locks made: less than ordered if the fill was ended.
    pub locks: u64,
    /// The error that ended it, if the etcd did.
    pub failed: Option<String>,
    /// Growth of the first member's database, in bytes.
    pub database_bytes_added: u64,
    /// The duration.
    pub took: Duration,
}

/// Why the etcd could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum EtcdFillError {
    /// The etcd could not be asked before the fill or after it.
    #[error("the etcd failed: {0}")]
    Etcd(#[from] Error),
    /// The prefix is no valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The TTL is too short for etcd.
    #[error("the TTL is too short: etcd counts leases in seconds, set --ttl to at least {TTL_MIN:?}")]
    Ttl,
    /// Leases that were to end together would end before the last is granted.
    #[error("{0:?} are too short to grant all leases that are to end then: set a longer TTL or fewer locks")]
    Late(Duration),
    /// No address is given.
    #[error("no member to fill: give --servers")]
    Nowhere,
}

/// Fills the etcd; calls `on_locks` with the number of locks made since the call before. If that breaks, or
/// the etcd refuses a request, the fill ends with the locks whose requests are in flight.
///
/// # Errors
///
/// [`EtcdFillError`]. An etcd that refuses a request of the fill is none: [`EtcdFilled::failed`] says why.
pub async fn fill_etcd(
    runtime: &TokioRuntime,
    fill: EtcdFill,
    on_locks: impl Fn(u64) -> ControlFlow<()>,
) -> Result<EtcdFilled, EtcdFillError> {
    if fill.ttl < TTL_MIN {
        return Err(EtcdFillError::Ttl);
    }
    let first = fill.servers.first().ok_or(EtcdFillError::Nowhere)?;
    let mut client = Client::connect([first], None).await?;
    metrics::describe_counter!(FILLED, "Locks that were filled in");
    let before = database_bytes(&mut client).await?;
    let shared = match fill.leases {
        Leases::Each | Leases::Together => None,
        Leases::Shared => Some(client.lease_grant(seconds(fill.ttl), None).await?.id()),
    };
    let begun = runtime.now();
    // Random lease ids, so that no other fill uses them, not even one with the same seed.
    let first = rand::random::<i64>() & (i64::MAX >> 1);
    let grants = Grants { shared, first, end: begun + fill.ttl };
    let (next, failed) = (Cell::new(0..fill.keys), Cell::new(None));
    let work = || async {
        let mut locks = 0;
        while let Some(batch) = take(&next) {
            let count = batch.end - batch.start;
            match make(runtime, &client, &fill, &grants, batch).await {
                Ok(()) => locks += count,
                Err(EtcdFillError::Etcd(error)) => {
                    next.take();
                    failed.set(Some(error.to_string()));
                    break;
                }
                Err(other) => return Err(other),
            }
            metrics::counter!(FILLED).increment(count);
            if on_locks(count).is_break() {
                // No worker takes another batch.
                next.take();
            }
        }
        Ok(locks)
    };
    let locks = try_join_all((0..AT_ONCE).map(|_| work())).await?.into_iter().sum();
    let took = runtime.now().saturating_since(begun);
    let after = with_retries(runtime, async || database_bytes(&mut client).await).await?;
    let (database_bytes_added, failed) = (after.saturating_sub(before), failed.take());
    Ok(EtcdFilled { fill, locks, failed, database_bytes_added, took })
}

/// Returns the size of a member's database file in bytes, free pages included.
///
/// # Errors
///
/// An error of the connection.
pub async fn database_bytes(client: &mut Client) -> Result<u64, Error> {
    Ok(client.status().await?.db_size().unsigned_abs())
}

/// The leases of a fill.
struct Grants {
    /// The id of the only one, if all locks share it.
    shared: Option<i64>,
    /// The others' ids are above this.
    first: i64,
    /// The time at which [`Leases::Together`] end.
    end: Instant,
}

impl Grants {
    /// Returns the id of a lock's lease.
    fn id(&self, number: u64) -> i64 {
        self.shared.unwrap_or_else(|| self.first.saturating_add_unsigned(number + 1))
    }

    /// Returns the TTL of a lease that is granted now.
    fn ttl(&self, fill: &EtcdFill, now: Instant) -> Result<Duration, EtcdFillError> {
        let left = self.end.saturating_since(now);
        match fill.leases {
            Leases::Each | Leases::Shared => Ok(fill.ttl),
            Leases::Together if left < TTL_MIN => Err(EtcdFillError::Late(fill.ttl)),
            Leases::Together => Ok(left),
        }
    }
}

/// Makes locks, by one transaction for all of them.
async fn make(
    runtime: &TokioRuntime,
    client: &Client,
    fill: &EtcdFill,
    grants: &Grants,
    batch: Range<u64>,
) -> Result<(), EtcdFillError> {
    let id = |number| grants.id(number);
    if grants.shared.is_none() {
        let ttl = grants.ttl(fill, runtime.now())?;
        let granted = batch.clone().map(async |number| {
            let mut client = client.clone();
            with_retries(runtime, async || grant(&mut client, id(number), ttl).await).await
        });
        try_join_all(granted).await?;
    }
    // By a transaction, as the library puts locks: for a plain put, etcd 3.4 iterates over all keys of the
    // lease (its `checkLeasePuts`), which allowed 50 puts a second with 100,000 keys under one lease.
    let put = |number| {
        let (key, owner) = place(fill, number)?;
        Ok(TxnOp::put(key, owner, Some(PutOptions::new().with_lease(id(number)))))
    };
    let puts = batch.map(put).collect::<Result<Vec<_>, KeyError>>()?;
    let mut client = client.clone();
    let put = async || client.txn(Txn::new().and_then(puts.clone())).await.map(|_| ());
    Ok(with_retries(runtime, put).await?)
}

/// Grants a lease with this id. If it exists, an earlier request created it and its answer was lost.
async fn grant(client: &mut Client, id: i64, ttl: Duration) -> Result<(), Error> {
    match client.lease_grant(seconds(ttl), Some(LeaseGrantOptions::new().with_id(id))).await {
        Err(Error::GRpcStatus(status)) if status.message().contains("lease already exists") => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Repeats a request while etcd is too busy. That is safe: each request names what it creates.
async fn with_retries<T>(
    runtime: &TokioRuntime,
    mut request: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    for attempt in 1..ATTEMPTS {
        match request().await {
            Err(Error::GRpcStatus(status)) if i32::from(status.code()) == UNAVAILABLE => {
                runtime.sleep_until(runtime.now() + FIRST_WAIT * (1 << (attempt - 1))).await;
            }
            other => return other,
        }
    }
    request().await
}

/// Takes the numbers of the next batch.
fn take(next: &Cell<Range<u64>>) -> Option<Range<u64>> {
    let left = next.take();
    let end = left.end.min(left.start + BATCH);
    next.set(end..left.end);
    (left.start < end).then_some(left.start..end)
}

/// Returns the key in the lock's queue and its value, as [`dlock::etcd`] writes them.
fn place(fill: &EtcdFill, number: u64) -> Result<(String, String), KeyError> {
    let mut random = ChaCha8Rng::seed_from_u64(fill.seed);
    // A random stream for each lock, so that it does not depend on the locks before it.
    random.set_stream(number);
    let lock = LockKey::new(&fill.key, &number.to_string())?;
    let owner = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
    Ok((lock.etcd_queue() + &owner, owner))
}

fn seconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX)
}

impl EtcdFilled {
    /// Returns the bytes of the database for each lock.
    pub fn bytes_per_lock(&self) -> f64 {
        self.database_bytes_added as f64 / self.locks.max(1) as f64
    }

    /// Returns the locks made a second.
    pub fn per_second(&self) -> f64 {
        self.locks as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64, leases: Leases) -> EtcdFill {
        let (servers, key, ttl) = (Vec::new(), "account".to_owned(), Duration::from_secs(60));
        EtcdFill { servers, keys: 10, key, seed, ttl, leases }
    }

    #[test]
    fn a_seed_gives_the_same_locks_in_any_order() {
        let fill = |seed| order(seed, Leases::Each);
        let one = place(&fill(1), 7).unwrap();
        assert_eq!(one, place(&fill(1), 7).unwrap());
        assert!(one.0.starts_with("lock/v1/account:7/") && one.0.ends_with(&one.1), "{one:?}");
        assert_ne!(one.1, place(&fill(1), 8).unwrap().1);
        assert_ne!(one.1, place(&fill(2), 7).unwrap().1);
    }

    #[test]
    fn leases_that_end_together_are_granted_for_what_is_left() {
        let of = |leases, at_s| {
            let (fill, begun) = (order(1, leases), Instant::from_nanos(5_000_000_000));
            let grants = Grants { shared: None, first: 0, end: begun + fill.ttl };
            let ttl = grants.ttl(&fill, begun + Duration::from_secs(at_s));
            ttl.map(|ttl| ttl.as_secs()).map_err(|error| error.to_string())
        };
        assert_eq!((of(Leases::Each, 0), of(Leases::Each, 59)), (Ok(60), Ok(60)));
        assert_eq!((of(Leases::Together, 0), of(Leases::Together, 59)), (Ok(60), Ok(1)));
        let late = of(Leases::Together, 60).unwrap_err();
        assert!(late.contains("60s are too short to grant all leases"), "{late}");
    }

    #[tokio::test]
    async fn only_a_busy_server_is_asked_again() {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        for (code, asked) in [(tonic::Code::Unavailable, 3), (tonic::Code::ResourceExhausted, 1)] {
            let mut count = 0;
            let outcome = with_retries(&runtime, async || {
                count += 1;
                if count == 3 { Ok(()) } else { Err(Error::GRpcStatus(tonic::Status::new(code, "refused"))) }
            });
            assert_eq!(outcome.await.is_ok(), asked == 3);
            assert_eq!(count, asked);
        }
    }
}
