//! Locks on a majority of independent Redis servers.
//!
//! Source: the Redis documentation on distributed locks ("Redlock"), and Kleppmann's objection that it has no
//! fencing token ("How to do distributed locking", 2016). Connections and answers are those of
//! [`crate::redis`].
//!
//! # A round
//!
//! All nodes are asked at once for their vote: a key that expires, as on one Redis. With the votes of a
//! majority the second phase begins (see below). The lease is granted when a majority has confirmed, and is
//! valid for the TTL less the time since *before the first request* and less the drift margin, on the
//! client's monotonic clock. The lock checks that after the last answer, and the handle again at each call. A
//! round does not wait for answers once it is decided; a task in the background does, so that even the
//! slowest node is connected and knows the scripts.
//!
//! Before the wait for the next round, a round that failed is released on all nodes that may have voted for
//! it, those that did not answer included: clients that split the votes would otherwise lock each other out
//! for a TTL. The waits are drawn at random, so that the clients don't collide again. The next round has an
//! owner token of its own: a late release of the last one can't end it.
//!
//! # The fencing token
//!
//! A counter on each node whose largest value in the majority is the token regresses: A, on nodes 1, 2 and 3,
//! where node 1 has counted 10, gets 11; B, on 3, 4 and 5 afterwards, gets 2. So the counters are written in
//! a second phase:
//!
//! 1. Each vote comes with the node's counter. The token is one above the largest of a majority's.
//! 2. Each node that voted raises its counter to the token, if the vote is still the owner's and the counter
//!    is *lower*. The grant counts when a majority has done so.
//!
//! *No two grants share a token.* Two majorities share a node. That node raised its counter to each of the
//! two tokens, and counters only grow: the later raise was to a larger token.
//!
//! *A grant that began after another had returned has the larger token.* When the first returned, a
//! majority's counters stood at its token or above. One of those nodes is in the majority that voted for the
//! second, and its counter was read after that.
//!
//! Neither needs that votes exclude each other, clocks that agree, or messages in order. Keys may expire
//! early; a node may have voted twice for one owner, in two rounds; a vote may end between the phases, or a
//! raise arrive late. A raise whose answer got lost is not counted, and a counter that was raised on a
//! minority only makes later tokens larger. A raise is never repeated: a node whose counter is at the token
//! already refuses it, since it can't know which owner raised it.
//!
//! Both need counters that only grow. *A node that loses acknowledged data* (a crash without `appendfsync
//! always`, an eviction, a failover) may be the one that the two majorities share: then tokens may repeat or
//! regress, and two owners may have the lock at once.
//! [`TokenSource::ServerTime`](crate::redis::TokenSource::ServerTime) takes the node's clock where that is
//! ahead of the counter, and keeps the order as long as the clocks of the nodes differ by less than the time
//! since the last grant and none steps back by more.
//!
//! The price of all this is a second round trip for each grant.
//!
//! # What it does not promise
//!
//! As with any lock that expires, a holder that pauses after the last check still trusts its lease. A node's
//! clock that jumps forward ends a vote early. Only the token stops the write.

mod acquisition;
mod holder;
mod memory;
#[cfg(test)]
mod model;
mod node;
mod options;
mod quorum;
mod scripts;

// quorum.rs counts votes and decides; acquisition.rs is a round; node.rs sends requests to one node;
// memory.rs remembers those requests; holder.rs reads who holds a key; model.rs tests the argument for the
// tokens.

use std::fmt;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime};

use self::acquisition::{Nodes, RedlockAcquisition};
pub use self::options::RedlockOptions;
pub(crate) use self::scripts::SCRIPTS;
use crate::backend::{Backend, Claim, Holder};
use crate::error::BackendError;
use crate::key::LockKey;
use crate::redis::Redis;
use crate::setup::SetupError;

/// The probes of this backend, file by file.
pub(crate) const PROBES: &[&[&dlock_runtime::Probe]] = &[acquisition::probe::ALL, memory::probe::ALL];

/// Several independent Redis servers, the majority of which grants a lock. Clones share the connections.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |_, runtime, _| {
/// use dlock::SetupError;
/// use dlock::redlock::{Redlock, RedlockOptions};
///
/// let redlock = |addresses: &[&str]| Redlock::new(runtime.clone(), addresses, RedlockOptions::default());
/// assert!(redlock(&["one:6379", "two:6379", "three:6379"]).is_ok());
/// let error = redlock(&["one:6379", "two:6379", "one:6379"]).unwrap_err();
/// assert!(matches!(error, SetupError::DuplicateNode { .. }));
/// # Ok(()) });
/// ```
pub struct Redlock<R: Runtime> {
    nodes: Arc<Nodes<R>>,
    addresses: Arc<[Box<str>]>,
}

impl<R: Runtime> Redlock<R> {
    /// Creates a client of the servers at `addresses`, each written `host:port`. Sends nothing yet. The
    /// servers must be independent: no replicas of each other. All clients that lock the same keys must name
    /// the same nodes.
    ///
    /// An odd number is best: 4 nodes survive the failure of one, as 3 do.
    ///
    /// # Errors
    ///
    /// [`SetupError`] for fewer than 3 nodes, a node named twice, an address that can't be one, or a timeout
    /// of zero.
    pub fn new(
        runtime: R,
        addresses: &[impl AsRef<str>],
        options: RedlockOptions,
    ) -> Result<Self, SetupError> {
        options.check(addresses)?;
        let node = |address: &str| Redis::new(runtime.clone(), address, options.node());
        let nodes = addresses.iter().map(|address| node(address.as_ref())).collect::<Result<_, _>>()?;
        let addresses = addresses.iter().map(|address| address.as_ref().into()).collect();
        Ok(Self { nodes: Arc::new(Nodes::new(runtime, nodes, options)), addresses })
    }
}

impl<R: Runtime> Backend for Redlock<R> {
    type Runtime = R;
    type Acquisition = RedlockAcquisition<R>;

    fn runtime(&self) -> &R {
        self.nodes.runtime()
    }

    fn system(&self) -> &'static str {
        "redlock"
    }

    async fn connect(&self, deadline: Instant) -> Result<(), BackendError> {
        self.nodes.connect(deadline).await
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        self.nodes.holder(key, deadline).await
    }

    fn open(&self, claim: Claim) -> RedlockAcquisition<R> {
        RedlockAcquisition::new(&self.nodes, claim)
    }
}

impl<R: Runtime> Clone for Redlock<R> {
    fn clone(&self) -> Self {
        Self { nodes: Arc::clone(&self.nodes), addresses: Arc::clone(&self.addresses) }
    }
}

impl<R: Runtime> fmt::Debug for Redlock<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").field("nodes", &self.addresses).finish_non_exhaustive()
    }
}
