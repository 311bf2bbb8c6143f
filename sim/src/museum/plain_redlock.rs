//! Redlock as published, with one of the mistakes that it invites: each node has its own counter, the
//! largest count of the majority is the token, and there is no second phase.
//!
//! Sources: Kleppmann, "How to do distributed locking" (2016), on the missing token; node-redlock issue 369
//! (B05), redsync issue 149 (B11), etcd's `client/v3/lease.go` (B12), node-redlock (B17), Redisson issue 1606
//! (B19).

use std::time::Duration;

use dlock::redis::{Redis, RedisOptions};
use dlock::{
    Acquisition, Answer, AnyBackend, Backend, BackendError, Claim, Instant, Released, Renewal, Runtime,
};
use futures_util::future::join_all;

use super::wall_clock::Readings;
use crate::lab::Workplace;
use crate::world::runtime::SimRuntime;

/// The mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// That of Redlock as published: the largest count is the token.
    LargestCount,
    /// Validity is counted from the reply.
    ValidityFromReply,
    /// The duration of a round is measured on the wall clock.
    WallClock,
    /// A round that fails leaves its keys, and the next one has another owner.
    OwnKeys,
    /// One node that does not renew is enough to drop the lease.
    OneNodeDrops,
    /// Only nodes that are known to have granted are released.
    KnownNodes,
    /// The lock is acquired on all nodes, or not at all. As on the correct lock, the keys of a failed round
    /// are deleted until every node has answered.
    AllNodes,
}

/// Returns the lock of a worker with this mistake.
pub(super) fn on_redlock(place: &Workplace<'_>, flaw: Flaw) -> Option<AnyBackend<SimRuntime>> {
    Some(AnyBackend::new(PlainRedlock::new(&place.runtime, &place.servers, flaw)))
}

/// Redlock without the second phase.
#[derive(Clone)]
struct PlainRedlock {
    nodes: Vec<Redis<SimRuntime>>,
    runtime: SimRuntime,
    flaw: Flaw,
}

/// One acquisition: one on each node, by node number.
struct PlainAcquisition {
    lock: PlainRedlock,
    ttl: Duration,
    nodes: Vec<Node>,
    /// Whether its keys are left where they are.
    is_abandoned: bool,
}

/// One node as an acquisition sees it.
struct Node {
    acquisition: <Redis<SimRuntime> as Backend>::Acquisition,
    /// Whether its last answer to a request was a grant, and it has not answered a release since.
    is_known: bool,
}

impl PlainRedlock {
    /// Returns the lock on the nodes at `addresses`.
    fn new(runtime: &SimRuntime, addresses: &[String], flaw: Flaw) -> Self {
        let node = |address| Redis::new(runtime.clone(), address, RedisOptions::default());
        // Leaves out malformed addresses: a validated schedule has none.
        let nodes = addresses.iter().filter_map(|address| node(address).ok()).collect();
        Self { nodes, runtime: runtime.clone(), flaw }
    }

    fn is_majority(&self, count: usize) -> bool {
        count * 2 > self.nodes.len()
    }

    /// Returns whether so many grants make a lease.
    fn is_enough(&self, grants: usize) -> bool {
        if self.flaw == Flaw::AllNodes { grants == self.nodes.len() } else { self.is_majority(grants) }
    }

    /// Returns the deadline for one node: well under the TTL. The mistakes about validity have no timeout,
    /// since it would hide them.
    fn node_deadline(&self, ttl: Duration, deadline: Instant) -> Instant {
        if matches!(self.flaw, Flaw::ValidityFromReply | Flaw::WallClock) {
            return Instant::MAX;
        }
        deadline.min(self.runtime.now() + (ttl / 10).max(Duration::from_millis(50)))
    }

    /// Returns the start of the lease: before the first request, unless the mistake changes it.
    fn since(&self, began: &Readings) -> Instant {
        match self.flaw {
            Flaw::ValidityFromReply => self.runtime.now(),
            Flaw::WallClock => began.believe(began.monotonic, &self.runtime),
            _ => began.monotonic,
        }
    }
}

impl Backend for PlainRedlock {
    type Runtime = SimRuntime;
    type Acquisition = PlainAcquisition;

    fn runtime(&self) -> &SimRuntime {
        &self.runtime
    }

    fn system(&self) -> &'static str {
        "redlock"
    }

    fn open(&self, claim: Claim) -> PlainAcquisition {
        let open = |node: &Redis<SimRuntime>| Node { acquisition: node.open(claim.clone()), is_known: false };
        let nodes = self.nodes.iter().map(open).collect();
        PlainAcquisition { lock: self.clone(), ttl: claim.ttl, nodes, is_abandoned: false }
    }
}

impl Acquisition for PlainAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { lock, ttl, nodes, is_abandoned } = self;
        let began = Readings::of(&lock.runtime);
        let each = lock.node_deadline(*ttl, deadline);
        let answers = join_all(nodes.iter_mut().map(|node| node.request(each))).await;
        let tokens = answers.iter().filter_map(|answer| match answer {
            Ok(Answer::Granted { token, .. }) => Some(*token),
            _ => None,
        });
        // The largest count of the majority: another majority may count less.
        let token = tokens.clone().max().filter(|_| lock.is_enough(tokens.count()));
        *is_abandoned = lock.flaw == Flaw::OwnKeys && token.is_none();
        match token {
            Some(token) => Ok(Answer::Granted { token, since: lock.since(&began), left: *ttl }),
            None => Ok(Answer::Held { left: None }),
        }
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.lock.runtime.sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Self { lock, ttl, nodes, is_abandoned } = self;
        let began = Readings::of(&lock.runtime);
        let each = lock.node_deadline(*ttl, deadline);
        let answers = join_all(nodes.iter_mut().map(|node| node.acquisition.renew(each))).await;
        let extended = answers.iter().filter(|answer| matches!(answer, Ok(Renewal::Extended { .. }))).count();
        if lock.flaw == Flaw::OneNodeDrops && extended < nodes.len() {
            *is_abandoned = true;
        } else if lock.is_majority(extended) {
            return Ok(Renewal::Extended { since: lock.since(&began), left: *ttl });
        }
        Ok(Renewal::NotOwner)
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { lock, ttl, nodes, is_abandoned } = self;
        let each = lock.node_deadline(*ttl, deadline);
        let meant = nodes.iter_mut().filter(|node| match lock.flaw {
            Flaw::KnownNodes => node.is_known,
            _ => !*is_abandoned,
        });
        let answers = join_all(meant.map(|node| node.release(each))).await;
        let done = answers.iter().filter(|answer| matches!(answer, Ok(Released::Done))).count();
        // A failed round may have left keys on a minority, whose answers count, too.
        let lost = answers.iter().any(Result::is_err);
        if lock.flaw == Flaw::AllNodes && lost && !lock.is_majority(done) {
            return Err(BackendError::NoAnswer);
        }
        Ok(if lock.is_majority(done) { Released::Done } else { Released::NotOwner })
    }

    fn may_be_held(&self) -> bool {
        let Self { lock, nodes, is_abandoned, .. } = self;
        let forgets = *is_abandoned || lock.flaw == Flaw::KnownNodes;
        let counts_known = lock.flaw == Flaw::AllNodes;
        let is_open = |node: &Node| node.acquisition.may_be_held() || counts_known && node.is_known;
        !forgets && nodes.iter().any(is_open)
    }

    /// Returns false after a failed round, so that the lock releases it, as Redlock specifies.
    fn is_repeatable(&self) -> bool {
        !self.may_be_held() && !matches!(self.lock.flaw, Flaw::OwnKeys | Flaw::KnownNodes)
    }
}

impl Node {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = self.acquisition.request(deadline).await;
        self.is_known = matches!(answer, Ok(Answer::Granted { .. }));
        answer
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let answer = self.acquisition.release(deadline).await;
        self.is_known &= answer.is_err();
        answer
    }
}
