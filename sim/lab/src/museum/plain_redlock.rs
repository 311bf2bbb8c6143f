//! Redlock of plain parts, one acquisition of one Redis for each node, with one of the mistakes that it
//! invites, or with none.
//!
//! Without a mistake, a round asks all nodes, and each counts its grant. The largest count of a majority is
//! the token. Then each node that granted raises its counter to the token, if it still stores the owner. The
//! grant counts when a majority has done so. Two majorities share a node, which stores one owner after the
//! other; so the later grant has the higher count there.
//!
//! Sources: Kleppmann, "How to do distributed locking" (2016), on the missing token (R07); node-redlock issue
//! 369 (B05), redsync issue 149 (B11), etcd's `client/v3/lease.go` (B12), node-redlock (B17), Redisson issue
//! 1606 (B19).

use std::future::ready;
use std::time::Duration;

use dlock::redis::Redis;
use dlock::{
    Acquisition, Answer, AnyBackend, Backend, BackendError, Claim, FencingToken, Instant, Released, Renewal,
    Runtime, timeout_at,
};
use futures_util::StreamExt;
use futures_util::future::{Either, join_all};
use futures_util::stream::FuturesUnordered;
use sim::world::runtime::SimRuntime;

use super::line::Line;
use super::wall_clock::Readings;
use crate::Workplace;

/// Raises the counter to the token if the key stores the owner and the counter is not above the token.
const RAISE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
                     local count = tonumber(redis.call('GET', KEYS[2]) or 0) \
                     if count > tonumber(ARGV[2]) then return 0 end \
                     redis.call('SET', KEYS[2], ARGV[2]) return 1";

/// The mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Redlock as published: no counter is raised, so that another majority may count less.
    LargestCount,
    /// Validity is counted from the reply.
    ValidityFromReply,
    /// The duration of a round is measured on the wall clock.
    WallClock,
    /// A round that fails leaves its keys, and the next one has another owner.
    OwnKeys,
    /// One node that does not renew is enough to drop the lease, and nothing is released.
    OneNodeDrops,
    /// Only nodes that are known to have granted are released.
    KnownNodes,
    /// The lock is acquired on all nodes, or not at all.
    AllNodes,
}

/// Returns the lock of a worker with this mistake, or without one.
pub(super) fn on_redlock(place: &Workplace<'_>, flaw: Option<Flaw>) -> Option<AnyBackend<SimRuntime>> {
    let node = |address: &String| {
        let redis = Redis::new(place.runtime.clone(), address, place.options.redis_lock()).ok()?;
        Some((redis, Line::new(place.runtime.clone(), address)))
    };
    // Leaves out malformed addresses: a validated schedule has none.
    let nodes = place.servers.iter().filter_map(node).collect();
    Some(AnyBackend::new(PlainRedlock { nodes, runtime: place.runtime.clone(), flaw }))
}

#[derive(Clone)]
struct PlainRedlock {
    nodes: Vec<(Redis<SimRuntime>, Line)>,
    runtime: SimRuntime,
    flaw: Option<Flaw>,
}

/// One acquisition, which consists of one on each node, by node number.
struct PlainAcquisition {
    lock: PlainRedlock,
    claim: Claim,
    nodes: Vec<Node>,
    /// True if its keys are left on the nodes.
    is_abandoned: bool,
}

/// One node in an acquisition.
struct Node {
    acquisition: <Redis<SimRuntime> as Backend>::Acquisition,
    line: Line,
    /// True if its last answer to a request was a grant, and it has not answered a release since.
    is_known: bool,
}

/// The nodes that said that the lease was this owner's, and those that said that it was not.
struct Tally {
    nodes: usize,
    yes: usize,
    no: usize,
}

impl PlainRedlock {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Returns true if this number of grants makes a lease.
    fn is_enough(&self, grants: usize) -> bool {
        if self.has(Flaw::AllNodes) { grants == self.nodes.len() } else { grants * 2 > self.nodes.len() }
    }

    /// Returns the deadline for one node: well under the TTL. The mistakes about validity wait longer,
    /// since a timeout would hide them.
    fn node_deadline(&self, ttl: Duration, deadline: Instant) -> Instant {
        if self.has(Flaw::ValidityFromReply) || self.has(Flaw::WallClock) {
            return self.runtime.now() + ttl * 2;
        }
        deadline.min(self.runtime.now() + (ttl / 10).max(Duration::from_millis(50)))
    }

    /// Returns the start of the lease: before the first request, unless the mistake changes it.
    fn since(&self, began: &Readings) -> Instant {
        match self.flaw {
            Some(Flaw::ValidityFromReply) => self.runtime.now(),
            Some(Flaw::WallClock) => began.believe(began.monotonic, &self.runtime),
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
        let open = |(redis, line): &(Redis<SimRuntime>, Line)| Node {
            acquisition: redis.open(claim.clone()),
            line: line.clone(),
            is_known: false,
        };
        let nodes = self.nodes.iter().map(open).collect();
        PlainAcquisition { lock: self.clone(), claim, nodes, is_abandoned: false }
    }
}

impl PlainAcquisition {
    /// Asks all nodes until enough have granted, then makes those raise their counters. Returns the token if
    /// enough did.
    async fn round(&mut self, deadline: Instant) -> Option<FencingToken> {
        let Self { lock, claim, nodes, .. } = self;
        let (lock, claim) = (&*lock, &*claim);
        let each = lock.node_deadline(claim.ttl, deadline);
        let mut calls: FuturesUnordered<_> = nodes.iter_mut().map(|node| node.request(each)).collect();
        let mut counts = Vec::new();
        // A dead node must not hold up the others. Its grant, if it comes later, is released with the rest.
        while !lock.is_enough(counts.len())
            && let Some(count) = calls.next().await
        {
            counts.extend(count);
        }
        drop(calls);
        let token = counts.iter().max().copied().filter(|_| lock.is_enough(counts.len()))?;
        if lock.has(Flaw::LargestCount) {
            return Some(token);
        }
        let each = lock.node_deadline(claim.ttl, deadline);
        let raises = nodes.iter().filter(|node| node.is_known);
        let raises = raises.map(|node| node.raise(claim, token, each, &lock.runtime));
        let raised = join_all(raises).await.into_iter().filter(|is_raised| *is_raised).count();
        lock.is_enough(raised).then_some(token)
    }
}

impl Acquisition for PlainAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let began = Readings::of(&self.lock.runtime);
        let token = self.round(deadline).await;
        let Self { lock, claim, is_abandoned, .. } = self;
        *is_abandoned = lock.has(Flaw::OwnKeys) && token.is_none();
        Ok(match token {
            Some(token) => Answer::Granted { token, since: lock.since(&began), left: claim.ttl },
            None => Answer::Taken { left: None },
        })
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.lock.runtime.sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Self { lock, claim, nodes, is_abandoned } = self;
        let began = Readings::of(&lock.runtime);
        let each = lock.node_deadline(claim.ttl, deadline);
        let answers = join_all(nodes.iter_mut().map(|node| node.acquisition.renew(each))).await;
        let tally = Tally::of(&answers, |answer| matches!(answer, Renewal::Extended { .. }));
        if lock.has(Flaw::OneNodeDrops) && tally.yes < tally.nodes {
            *is_abandoned = true;
            return Ok(Renewal::NotOwner);
        }
        if tally.is_majority(tally.yes) {
            return Ok(Renewal::Extended { since: lock.since(&began), left: claim.ttl });
        }
        if tally.blocks(tally.no) { Ok(Renewal::NotOwner) } else { Err(BackendError::NoAnswer) }
    }

    /// Releases on all nodes. The lease has ended when the keys that may remain are no majority. It was ours
    /// until now unless a majority denies it.
    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { lock, claim, nodes, is_abandoned } = self;
        let each = lock.node_deadline(claim.ttl, deadline);
        let calls = nodes.iter_mut().map(|node| {
            let is_left = *is_abandoned || lock.has(Flaw::KnownNodes) && !node.is_known;
            if is_left {
                return Either::Left(ready(Ok(Released::NotOwner)));
            }
            Either::Right(node.release(each))
        });
        let answers = join_all(calls).await;
        let tally = Tally::of(&answers, |answer| *answer == Released::Done);
        if !tally.is_majority(tally.yes) && tally.blocks(tally.no) {
            return Ok(Released::NotOwner);
        }
        if tally.blocks(tally.yes + tally.no) { Ok(Released::Done) } else { Err(BackendError::NoAnswer) }
    }

    fn needs_cleanup(&self) -> bool {
        let is_open = |node: &Node| {
            node.is_known || node.acquisition.needs_cleanup() && !self.lock.has(Flaw::KnownNodes)
        };
        !self.is_abandoned && self.nodes.iter().any(is_open)
    }

    /// Returns false after a failed round, so that the lock releases it, as Redlock specifies.
    fn is_repeatable(&self) -> bool {
        !self.needs_cleanup() && !self.lock.has(Flaw::OwnKeys) && !self.lock.has(Flaw::KnownNodes)
    }
}

impl Node {
    /// Returns the count of the grant, if the node granted.
    async fn request(&mut self, deadline: Instant) -> Option<FencingToken> {
        // Opened already for the second phase.
        drop(self.line.open());
        let answer = self.acquisition.request(deadline).await;
        let Ok(Answer::Granted { token, .. }) = answer else {
            self.is_known = false;
            return None;
        };
        self.is_known = true;
        Some(token)
    }

    /// Returns true if the node has raised its counter to the token. Without an answer, the next command uses
    /// another connection.
    async fn raise(&self, claim: &Claim, token: FencingToken, by: Instant, runtime: &SimRuntime) -> bool {
        let mut command = redis::cmd("EVAL");
        command.arg(RAISE).arg(2).arg(claim.key.owner_key()).arg(claim.key.fence_key());
        command.arg(claim.owner.as_str()).arg(token.as_u64());
        let answer = timeout_at(runtime, by, self.line.ask::<bool>(&command)).await;
        let Ok(Ok(is_raised)) = answer else {
            self.line.close();
            return false;
        };
        is_raised
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let answer = self.acquisition.release(deadline).await;
        self.is_known &= answer.is_err();
        answer
    }
}

impl Tally {
    fn of<T>(answers: &[Result<T, BackendError>], is_ours: impl Fn(&T) -> bool) -> Self {
        let answered = answers.iter().flatten();
        let yes = answered.clone().filter(|answer| is_ours(answer)).count();
        Self { nodes: answers.len(), yes, no: answered.count() - yes }
    }

    fn is_majority(&self, count: usize) -> bool {
        count * 2 > self.nodes
    }

    /// Returns true if the nodes are no majority without `count` of them.
    fn blocks(&self, count: usize) -> bool {
        !self.is_majority(self.nodes - count)
    }
}
