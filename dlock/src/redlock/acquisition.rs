//! One acquisition on a majority of several Redis servers.

use std::future::{Future, ready};
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::memory::Memory;
use super::node::{Node, Question, Reply};
use super::options::RedlockOptions;
use super::quorum::{Quorum, Round, Tally};
use crate::backend::{Acquisition, Answer, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::redis::Redis;

/// The servers and options, shared by all acquisitions.
pub(super) struct Nodes<R: Runtime> {
    runtime: R,
    nodes: Box<[Redis<R>]>,
    options: RedlockOptions,
}

/// One attempt to hold one lease on a majority: one round.
pub struct RedlockAcquisition<R: Runtime> {
    nodes: Arc<Nodes<R>>,
    claim: Claim,
    /// One for each node, once the first request was made.
    memories: Box<[Memory<R>]>,
}

impl<R: Runtime> RedlockAcquisition<R> {
    pub(super) fn new(nodes: &Arc<Nodes<R>>, claim: Claim) -> Self {
        Self { nodes: Arc::clone(nodes), claim, memories: Box::default() }
    }

    /// Returns the nodes to ask, each with the deadline of its timeout or `deadline`, whichever is earlier.
    fn ask(&mut self, deadline: Instant) -> impl Iterator<Item = Node<R>> + '_ {
        let Self { nodes: shared, claim, memories } = self;
        let Nodes { nodes, options, .. } = &**shared;
        if memories.is_empty() {
            *memories = nodes.iter().map(|redis| Memory::new(redis, claim)).collect();
        }
        let deadline = deadline.min(shared.now() + options.timeout(claim.ttl));
        nodes.iter().zip(&**memories).enumerate().map(move |(number, (redis, memory))| Node {
            number,
            redis: redis.clone(),
            claim: claim.clone(),
            memory: memory.clone(),
            deadline,
        })
    }

    /// Returns one node, for the second request.
    fn ask_again(&mut self, number: usize, deadline: Instant) -> Option<Node<R>> {
        self.ask(deadline).nth(number)
    }
}

impl<R: Runtime> Acquisition for RedlockAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let began = self.nodes.now();
        let mut round = Round::new(self.nodes.quorum());
        let vote = Question::Vote(self.nodes.options.tokens);
        let mut calls: FuturesUnordered<_> = self.ask(deadline).map(|node| node.ask(vote)).collect();
        loop {
            let Some((number, reply)) = calls.next().await else { return Err(BackendError::NoAnswer) };
            match reply {
                Reply::Vote(vote) => round.voted(number, vote),
                Reply::Raise(raised) => round.raised(number, raised),
            }
            while let Some((number, token)) = round.next_raise() {
                let node = self.ask_again(number, deadline);
                calls.extend(node.map(|node| node.ask(Question::Raise(token))));
            }
            if let Some(outcome) = round.outcome(began) {
                self.nodes.leave(calls);
                return outcome;
            }
        }
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.nodes.runtime.sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = self.nodes.now();
        let calls = self.ask(deadline).map(Node::renew).collect();
        let extended = self.nodes.gather(calls, Tally::majority).await?;
        Ok(if extended { Renewal::Extended { since, left: self.claim.ttl } } else { Renewal::NotOwner })
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let calls = self.ask(deadline).map(Node::release).collect();
        let released = self.nodes.gather(calls, Tally::released).await?;
        Ok(if released { Released::Done } else { Released::NotOwner })
    }

    /// Votes count until they are known to have ended: those of a failed round must be released, and a
    /// release that a majority has confirmed must still reach the other nodes.
    fn may_be_held(&self) -> bool {
        self.memories.iter().any(Memory::is_open)
    }

    /// A round that failed is released, and that release may arrive late: it must not end the next round.
    fn is_repeatable(&self) -> bool {
        !self.may_be_held()
    }
}

impl<R: Runtime> Nodes<R> {
    pub(super) fn new(runtime: R, nodes: Box<[Redis<R>]>, options: RedlockOptions) -> Self {
        Self { runtime, nodes, options }
    }

    pub(super) fn runtime(&self) -> &R {
        &self.runtime
    }

    fn quorum(&self) -> Quorum {
        Quorum { nodes: self.nodes.len() }
    }

    fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Waits in the background for the answers that the call no longer needs. If the requests were dropped, a
    /// node that is always slower than the others would never be connected, nor learn a script.
    fn leave<F>(&self, calls: FuturesUnordered<F>)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if !calls.is_empty() {
            self.runtime.spawn(calls.for_each(|_| ready(())));
        }
    }

    /// Collects answers until `decide` returns a decision.
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
