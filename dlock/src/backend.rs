//! What a lock server must do for a lock: three calls, and a memory of what it was sent.
//!
//! The lock decides when to call, how long to wait and what an answer is worth; a backend knows only how to ask. It keeps
//! no time but its runtime's and never decides that a lease is held.
//!
//! There are two families. Where the server only says yes or no (Redis, Redlock), the lock asks again after a wait of its
//! own. Where it keeps a queue (etcd, ZooKeeper), the first call puts the claim in line ([`Answer::Queued`]) and the lock
//! waits by [`Backend::turn`], a watch, before it asks again. Such servers tie a lease to the client's session rather than
//! to a TTL of its own ([`Backend::EXPIRES`]).

use std::future::Future;
use std::time::Duration;

use crate::event::Outcome;
use crate::handle::Released;
use crate::key::LockKey;
use crate::runtime::{Instant, Runtime};
use crate::token::{FencingToken, Owner};

/// A lock server, or several that act as one.
///
/// Each call must end by `patience`, and treat a server that has not answered by then as unreachable. The caller may drop
/// the future at any await point: `trail` must tell the truth even then, so note a request there *before* it is sent.
pub trait Backend: Clone + Send + Sync + 'static {
    /// The outside world, as the backend sees it; the lock uses the same clock.
    type Runtime: Runtime;

    /// What is remembered of one acquisition between its calls.
    type Trail: Trail;

    /// Whether a lease that is neither renewed nor released ends by its TTL. It does not where it lives for as long as the
    /// client's session: then whatever is given up is asked for until the server has confirmed its end, and
    /// [`Handle::leave`](crate::Handle::leave) releases when the TTL is over.
    const EXPIRES: bool = true;

    /// Whether a claim that was not granted may be asked for again under the same owner. Where it may not, what the last
    /// attempt was granted in part is given back before the wait, and the next attempt is a claim of its own.
    const REPEATABLE: bool = true;

    /// The outside world.
    fn runtime(&self) -> &Self::Runtime;

    /// The longest TTL that a lease on this server can have, if there is a bound: that of the session that it is tied to.
    fn ttl_max(&self) -> Option<Duration> {
        None
    }

    /// Asks once for the lease of `claim`. Asking again with the same claim, after an answer was lost, must give the
    /// same lease with the same fencing token if the server granted it already, and keep its place in line if it has one;
    /// but see [`Backend::REPEATABLE`].
    fn acquire(
        &self,
        claim: &Claim,
        trail: &mut Self::Trail,
        patience: Instant,
    ) -> impl Future<Output = Result<Answer, BackendError>> + Send;

    /// Waits until it is worth asking again for a claim that was [`Answer::Queued`]: whoever was ahead of it is gone, or
    /// that may be so. It ends at `until` at the latest.
    ///
    /// The default is for backends without a queue, whose claims are never queued.
    fn turn(
        &self,
        _claim: &Claim,
        _trail: &mut Self::Trail,
        until: Instant,
    ) -> impl Future<Output = Result<(), BackendError>> + Send {
        let runtime = self.runtime().clone();
        async move {
            runtime.sleep_until(until).await;
            Ok(())
        }
    }

    /// Waits until `until`, or until it may be worth asking again before, for a claim that was [`Answer::Held`]: where the
    /// server tells of releases. It is a hint: nobody may rely on being told.
    ///
    /// The default is for servers that tell nobody.
    fn freed(
        &self,
        _claim: &Claim,
        _trail: &mut Self::Trail,
        until: Instant,
    ) -> impl Future<Output = ()> + Send {
        let runtime = self.runtime().clone();
        async move { runtime.sleep_until(until).await }
    }

    /// Sets the lease of `claim` back to its full TTL, if its owner still holds it, and never otherwise.
    fn renew(
        &self,
        claim: &Claim,
        trail: &mut Self::Trail,
        patience: Instant,
    ) -> impl Future<Output = Result<Renewal, BackendError>> + Send;

    /// Ends the lease of `claim`, if its owner still holds it, and never otherwise. It must not overtake a request of
    /// the same acquisition that is still on its way, as far as the backend can order them; what it can't order stays
    /// open in `trail`.
    fn release(
        &self,
        claim: &Claim,
        trail: &mut Self::Trail,
        patience: Instant,
    ) -> impl Future<Output = Result<Released, BackendError>> + Send;
}

/// What a backend remembers of one acquisition: which requests may still take effect, and by which way they went.
pub trait Trail: Default + Send + Sync + 'static {
    /// Whether a request was sent that may have been executed without our knowing, or may still be.
    fn is_open(&self) -> bool;
}

/// Who asks for which lease. One an acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is to be locked.
    pub key: LockKey,
    /// Who asks.
    pub owner: Owner,
    /// How long the lease is to live: whole milliseconds, at least one.
    pub ttl: Duration,
}

/// A lock server's answer to [`Backend::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lease is the claim's.
    Granted {
        /// Its fencing token.
        token: FencingToken,
        /// The client's clock before the first request was sent that may have been the one that was granted.
        since: Instant,
        /// How long the lease lives from `since` on, at least.
        left: Duration,
    },
    /// Another owner holds it.
    Held {
        /// How long the other's lease still lives unless renewed, if the server can tell.
        left: Option<Duration>,
    },
    /// Others are ahead of it; the server keeps its place in line.
    Queued {
        /// The place: lower is served first. Only its order means something.
        position: u64,
    },
}

/// A lock server's answer to [`Backend::renew`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease lives for its full TTL again, or for as long as the session that it is tied to.
    Extended {
        /// The client's clock before the request was sent.
        since: Instant,
        /// How long the lease lives from `since` on, at least.
        left: Duration,
    },
    /// The lease expired, or is another's.
    NotOwner,
}

/// Why a lock server gave no answer that a lock can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No connection: nothing was sent.
    #[error(
        "no connection to the lock server at {address}: {reason}; check that it runs and that this host may reach it"
    )]
    Unreachable {
        /// The server's address.
        address: String,
        /// What the attempt to connect said.
        reason: String,
    },
    /// The server did not answer in time. It may have executed the request all the same.
    #[error(
        "the lock server did not answer in time; it may be overloaded or cut off: see Options::request_timeout"
    )]
    NoAnswer,
    /// The connection broke before the answer arrived. The server may have executed the request all the same.
    #[error(
        "the connection to the lock server broke before its answer: {reason}; the next call opens another"
    )]
    Disconnected {
        /// What the connection said.
        reason: String,
    },
    /// The session that the claim is tied to is over, and the claim with it. The next acquire opens another session.
    #[error("the session with the lock server is over: {0}; acquire anew")]
    SessionLost(SessionEnd),
    /// The server can't reach a majority of its cluster. It may execute the request later all the same.
    #[error("the lock server is without a quorum: {message}; the next call goes to another member")]
    Isolated {
        /// The server's words.
        message: String,
    },
    /// The server answered with an error.
    #[error("the lock server refused: {message}; {}", if *.passing { "it may take the request later" } else { "look up this error in its manual, no retry will help" })]
    Refused {
        /// The server's words.
        message: String,
        /// Whether the same request may succeed later.
        passing: bool,
    },
    /// Of several independent servers too few answered for a majority of all. Some may have executed the request.
    #[error(
        "no quorum: {answered} of {nodes} lock servers answered, {needed} are needed; bring back those that are down or \
         cut off, or raise RedlockOptions::node_timeout if they are slow; one of them: {failure}"
    )]
    NoQuorum {
        /// How many answered.
        answered: usize,
        /// How many there are.
        nodes: usize,
        /// How many make a majority.
        needed: usize,
        /// What one of the others failed with.
        #[source]
        failure: Box<BackendError>,
    },
}

/// How a client's session with a lock server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// The server knows it no more: it expired there, or was revoked.
    #[error("the server does not know it any more")]
    Unknown,
    /// It was not confirmed for as long as it lives, by the client's own clock.
    #[error("the server did not confirm it in time")]
    Unconfirmed,
}

impl BackendError {
    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { passing, .. } => *passing,
            Self::NoQuorum { failure, .. } => failure.is_passing(),
            _ => true,
        }
    }

    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::NoAnswer => Outcome::Timeout,
            Self::NoQuorum { failure, .. } => failure.outcome(),
            _ => Outcome::Error,
        }
    }
}
