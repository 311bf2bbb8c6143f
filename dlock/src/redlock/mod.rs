//! Locks on a majority of independent Redis servers.
//!
//! Source: the Redis documentation on distributed locks ("Redlock"), and what Kleppmann ("How to do distributed locking",
//! 2016) found missing in it: a fencing token. `quorum.rs` counts votes and decides, `node.rs` asks one node, `trail.rs`
//! remembers what was sent to each; connections, scripts and answers are those of [`crate::redis`].
//!
//! # A round
//!
//! All nodes are asked at once for their vote: a key that expires, as on one Redis. With the votes of a majority the
//! second phase begins (see below). The lease is granted when a majority has confirmed, and is valid for the TTL less the
//! time since *before the first request* and less the drift margin, on the client's monotonic clock. The lock checks that
//! after the last answer, and the handle again whenever it is asked. An answer that comes in when the round is decided
//! holds nobody up; it is waited for in the background, so that even the slowest node is connected and knows the scripts.
//!
//! A round that fails is given back on all nodes that may have a vote of it, those that did not answer included, before the
//! wait for the next one, so that those who split the votes don't lock each other out for a TTL; the waits are drawn at
//! random, so that they don't meet again. The next round has an owner token of its own: a late release of the last one can't
//! end it.
//!
//! # The fencing token
//!
//! A counter on each node whose largest value in the majority is the token regresses: A, on nodes 1, 2 and 3, where node 1
//! has counted 10, gets 11; B, on 3, 4 and 5 afterwards, gets 2. So the counters are written in a second phase:
//!
//! 1. Each vote comes with the node's counter. The token is one above the largest of a majority's.
//! 2. Each node that voted raises its counter to the token, if the vote is still the owner's and the counter is *lower*.
//!    The grant counts when a majority has done so.
//!
//! *No two grants share a token.* Two majorities share a node. It raised its counter to each of the two tokens, and
//! counters only grow: the raise that came later was to a larger one.
//!
//! *A grant that began when another had returned has the larger token.* When the first returned, a majority's counters
//! stood at its token or above. One of those nodes is in the majority that voted for the second, and its counter was read
//! after that.
//!
//! Neither needs that votes exclude each other, clocks that agree, or messages in order. Keys may expire early; a node
//! may have voted twice for one owner, in two rounds; a vote may end between the phases, or a raise arrive late. A raise
//! whose answer got lost is not counted, and the counter that it raised on a minority only makes later tokens larger. What
//! is never repeated is a raise: a node that is at the token already refuses it, since it can't tell whose it was.
//!
//! What it does need is that counters only grow. *A node that loses acknowledged data* (a crash without `appendfsync always`,
//! an eviction, a failover) may be the one that the two majorities share: then tokens may repeat or regress, as two owners may
//! hold the lock at once. [`TokenSource::ServerTime`](crate::redis::TokenSource::ServerTime) takes the node's clock where that is ahead of the counter, and keeps
//! the order as long as the clocks of the nodes differ by less than the time since the last grant and none steps back by
//! more.
//!
//! The price of all this is a second round trip for each grant.
//!
//! # What it does not give
//!
//! As with any lock that releases itself, a holder that pauses after the last check still believes in its lease. And a node's
//! clock that jumps forward ends a vote early. The token is what stops the write.

#[cfg(test)]
mod model;
mod node;
mod options;
mod quorum;
mod trail;

use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use self::node::{Node, Question, Reply};
pub use self::options::{RedlockError, RedlockOptions};
use self::quorum::{Quorum, Round, Tally};
use self::trail::Memory;
use crate::backend::{Acquisition, Answer, Backend, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::redis::Redis;
use crate::runtime::{Instant, Runtime};

/// Several independent Redis servers, the majority of which grants a lock. Clones share the connections.
pub struct Redlock<R: Runtime>(Arc<Inner<R>>);

struct Inner<R: Runtime> {
    runtime: R,
    nodes: Box<[Redis<R>]>,
    addresses: Box<[Box<str>]>,
    options: RedlockOptions,
}

impl<R: Runtime> Redlock<R> {
    /// The servers at `addresses`, each written `host:port`. Nothing is sent yet. They must be independent: no replicas of
    /// each other. All who lock the same keys must name the same nodes.
    ///
    /// An odd number is best: 4 nodes outlive the failure of one, as 3 do.
    ///
    /// # Errors
    ///
    /// [`RedlockError`] for fewer than 3 nodes, a node named twice, or a timeout of zero.
    pub fn new<A: AsRef<str>>(
        runtime: R,
        addresses: &[A],
        options: RedlockOptions,
    ) -> Result<Self, RedlockError> {
        options.check(addresses)?;
        let node = |address: &A| Redis::with_info(runtime.clone(), address.as_ref(), options.login.clone());
        let nodes = addresses.iter().map(node).collect();
        let addresses = addresses.iter().map(|address| address.as_ref().into()).collect();
        Ok(Self(Arc::new(Inner { runtime, nodes, addresses, options })))
    }

    /// The addresses of the nodes, in the order in which they were given.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.0.addresses.iter().map(|address| &**address)
    }

    fn quorum(&self) -> Quorum {
        Quorum { nodes: self.0.nodes.len() }
    }

    fn now(&self) -> Instant {
        self.0.runtime.now()
    }

    /// Waits in the background for what no longer matters to the call: no request is dropped on its way, or a node that is
    /// always slower than the others would never be connected, nor learn a script.
    fn leave<F>(&self, calls: FuturesUnordered<F>)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if !calls.is_empty() {
            self.0.runtime.spawn(calls.for_each(|_| ready(())));
        }
    }

    /// Takes answers until `decide` has seen enough.
    async fn gather<F>(
        &self,
        mut calls: FuturesUnordered<F>,
        decide: impl Fn(&Tally) -> Option<Result<bool, BackendError>>,
    ) -> Result<bool, BackendError>
    where
        F: Future<Output = Result<bool, BackendError>> + Send + 'static,
    {
        let mut tally = Tally::new(self.quorum());
        loop {
            if let Some(decision) = decide(&tally) {
                self.leave(calls);
                return decision;
            }
            // All have answered: `decide` would have decided.
            let Some(answer) = calls.next().await else { return Err(BackendError::NoAnswer) };
            tally.answered(answer);
        }
    }
}

impl<R: Runtime> Backend for Redlock<R> {
    type Runtime = R;
    type Acquisition = RedlockAcquisition<R>;

    fn runtime(&self) -> &R {
        &self.0.runtime
    }

    fn open(&self, claim: Claim) -> RedlockAcquisition<R> {
        RedlockAcquisition { redlock: self.clone(), claim, nodes: Box::default() }
    }
}

/// One attempt to hold one lease on a majority: one round.
pub struct RedlockAcquisition<R: Runtime> {
    redlock: Redlock<R>,
    claim: Claim,
    /// One of each node, once the first request was made.
    nodes: Box<[Memory<R>]>,
}

impl<R: Runtime> RedlockAcquisition<R> {
    /// The nodes, to be asked and given up when their timeout is over, or at `deadline`.
    fn ask(&mut self, deadline: Instant) -> impl Iterator<Item = Node<R>> + '_ {
        let Self { redlock, claim, nodes } = self;
        let Inner { nodes: servers, options, .. } = &*redlock.0;
        if nodes.is_empty() {
            *nodes = servers.iter().map(|redis| Memory::new(redis, claim)).collect();
        }
        let patience = deadline.min(redlock.now() + options.timeout(claim.ttl));
        let nodes = servers.iter().zip(&**nodes).enumerate();
        nodes.map(move |(number, (redis, memory))| Node {
            number,
            redis: redis.clone(),
            claim: claim.clone(),
            memory: memory.clone(),
            patience,
        })
    }

    /// One node, to be asked a second time.
    fn ask_again(&mut self, number: usize, deadline: Instant) -> Option<Node<R>> {
        self.ask(deadline).nth(number)
    }
}

impl<R: Runtime> Acquisition for RedlockAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let began = self.redlock.now();
        let mut round = Round::new(self.redlock.quorum());
        let vote = Question::Vote(self.redlock.0.options.tokens);
        let mut calls: FuturesUnordered<_> = self.ask(deadline).map(|node| node.ask(vote)).collect();
        loop {
            let Some((number, reply)) = calls.next().await else { return Err(BackendError::NoAnswer) };
            match reply {
                Reply::Vote(vote) => round.voted(number, vote),
                Reply::Raise(raised) => round.raised(number, raised),
            }
            while let Some((number, token)) = round.tell() {
                let node = self.ask_again(number, deadline);
                calls.extend(node.map(|node| node.ask(Question::Raise(token))));
            }
            if let Some(outcome) = round.outcome(began) {
                self.redlock.leave(calls);
                return outcome;
            }
        }
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.redlock.0.runtime.sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = self.redlock.now();
        let calls = self.ask(deadline).map(Node::renew).collect();
        let extended = self.redlock.gather(calls, Tally::majority).await?;
        Ok(if extended { Renewal::Extended { since, left: self.claim.ttl } } else { Renewal::NotOwner })
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let calls = self.ask(deadline).map(Node::release).collect();
        let released = self.redlock.gather(calls, Tally::released).await?;
        Ok(if released { Released::Done } else { Released::NotOwner })
    }

    /// Votes count until they are known to have ended: those of a round that failed must be given back, and a release that
    /// a majority confirmed has yet to reach the others.
    fn may_be_held(&self) -> bool {
        self.nodes.iter().any(Memory::is_open)
    }

    /// A round that failed is given back, and a release that is late must not end the next one.
    fn is_repeatable(&self) -> bool {
        !self.may_be_held()
    }
}

impl<R: Runtime> Clone for Redlock<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> fmt::Debug for Redlock<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").field("nodes", &self.0.addresses).finish_non_exhaustive()
    }
}
