//! One acquisition on a majority of several Redis servers.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, sometimes};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::memory::Memory;
use super::node::{Node, Question, Reply};
use super::options::RedlockOptions;
use super::quorum::{Quorum, Round, Tally, Vote};
use crate::backend::{Acquisition, Answer, Backend, Claim, Released, Renewal};
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
            let Some((node, reply)) = calls.next().await else { return Err(BackendError::NoAnswer) };
            match reply {
                Reply::Vote(vote) => round.voted(node.number, vote),
                Reply::Raise(raised) => {
                    sometimes!(self.nodes.runtime, vote_withdrawn, matches!(raised, Ok(false)));
                    round.raised(node.number, raised);
                }
            }
            while let Some((number, token)) = round.next_raise() {
                let node = self.ask_again(number, deadline);
                calls.extend(node.map(|node| node.ask(Question::Raise(token))));
            }
            if let Some(outcome) = round.outcome(began) {
                let is_granted = matches!(outcome, Ok(Answer::Granted { .. }));
                sometimes!(self.nodes.runtime, granted_before_all_answered, is_granted && !calls.is_empty());
                let is_split = matches!(outcome, Ok(Answer::Taken { left: None }));
                sometimes!(self.nodes.runtime, votes_split, is_split);
                sometimes!(self.nodes.runtime, quorum_missed, outcome.is_err());
                self.nodes.drain(calls, |(node, reply)| {
                    sometimes!(
                        node.runtime(),
                        vote_after_decision,
                        matches!(reply, Reply::Vote(Ok(Vote::Given(_))))
                    );
                });
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
        let open = || self.memories.iter().filter(|memory| memory.is_open()).count();
        sometimes!(
            self.nodes.runtime,
            minority_given_back,
            (1..self.nodes.quorum().needed()).contains(&open())
        );
        let calls = self.ask(deadline).map(Node::release).collect();
        let released = self.nodes.gather(calls, Tally::released).await?;
        Ok(if released { Released::Done } else { Released::NotOwner })
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.claim.ttl = ttl;
    }

    /// Votes count until they are known to have ended: those of a failed round must be released, and a
    /// release that a majority has confirmed must still reach the other nodes.
    fn needs_cleanup(&self) -> bool {
        self.memories.iter().any(Memory::is_open)
    }

    /// A round that failed is released, and that release may arrive late: it must not end the next round.
    fn is_repeatable(&self) -> bool {
        !self.needs_cleanup()
    }
}

impl<R: Runtime> Nodes<R> {
    pub(super) fn new(runtime: R, nodes: Box<[Redis<R>]>, options: RedlockOptions) -> Self {
        Self { runtime, nodes, options }
    }

    pub(super) fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Returns the clients of the nodes.
    pub(super) fn clients(&self) -> &[Redis<R>] {
        &self.nodes
    }

    pub(super) fn quorum(&self) -> Quorum {
        Quorum { nodes: self.nodes.len() }
    }

    fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Connects to the nodes; succeeds once a majority has answered.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<(), BackendError> {
        let greet = |node: &Redis<R>| {
            let node = node.clone();
            async move { node.connect(deadline).await.map(|()| true) }
        };
        self.gather(self.nodes.iter().map(greet).collect(), Tally::majority).await.map(drop)
    }

    /// Waits in the background for the answers that the call no longer needs, and passes each to `heard`. If
    /// the requests were dropped, a node that is always slower than the others would never be connected, nor
    /// learn a script.
    pub(super) fn drain<F>(&self, calls: FuturesUnordered<F>, heard: impl Fn(F::Output) + Send + 'static)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if !calls.is_empty() {
            self.runtime.spawn(calls.for_each(move |answer| {
                heard(answer);
                ready(())
            }));
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
                self.drain(calls, drop);
                return decision;
            }
            // All have answered: `decide` would have decided.
            let Some(answer) = calls.next().await else { return Err(BackendError::NoAnswer) };
            tally.answered(answer);
        }
    }
}

probes! {
    /// A node voted for a round that had been decided without it.
    sometimes vote_after_decision;
    /// A round was granted before all nodes had answered.
    sometimes granted_before_all_answered;
    /// A node that had voted refused to raise its counter: its vote had ended, or a larger token was granted.
    sometimes vote_withdrawn;
    /// No owner got a majority of the votes.
    sometimes votes_split;
    /// Too few nodes answered a round.
    sometimes quorum_missed;
    /// The votes of a minority were released.
    sometimes minority_given_back;
}
