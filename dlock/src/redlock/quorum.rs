//! Counts votes and decides a round. Pure: answers in, decisions out.

use std::time::Duration;

use dlock_runtime::Instant;

use crate::backend::Answer;
use crate::error::BackendError;
use crate::token::FencingToken;

/// A number of nodes, and how many of them make a majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quorum {
    pub(super) nodes: usize,
}

impl Quorum {
    /// Returns the size of the smallest majority. Any two majorities share a node.
    pub(super) fn needed(self) -> usize {
        self.nodes / 2 + 1
    }

    /// Returns the smallest number of nodes without which the others are no majority.
    pub(super) fn blocking(self) -> usize {
        self.nodes - self.needed() + 1
    }

    /// Returns the error of a round that too few nodes answered; `failures` are the errors of the others. If
    /// enough of them are final to block a majority, no retry helps, and the error is one of theirs.
    pub(super) fn missed(self, answered: usize, failures: &[&BackendError]) -> BackendError {
        let passing = failures.iter().filter(|failure| failure.is_passing()).count();
        let is_final = failures.len() - passing >= self.blocking();
        let failure = failures.iter().find(|failure| failure.is_passing() != is_final);
        BackendError::NoQuorum {
            answered,
            nodes: self.nodes,
            needed: self.needed(),
            failure: Box::new(failure.map_or(BackendError::NoAnswer, |failure| (**failure).clone())),
        }
    }
}

/// One attempt to acquire: a vote of each node, then each node's confirmation that it raised its counter to
/// the token.
#[derive(Debug)]
pub(super) struct Round {
    quorum: Quorum,
    ballots: Vec<Ballot>,
    token: Option<FencingToken>,
}

/// A node's answer to the first phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    Given(Given),
    /// Another owner has the node's vote.
    Taken {
        left: Option<Duration>,
        by: Option<Box<str>>,
    },
}

/// A vote for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The lowest token that the node accepts.
    pub(super) lowest: FencingToken,
    /// The earliest end of the vote, on the client's clock.
    pub(super) until: Instant,
}

/// The state of a node in the round.
#[derive(Debug)]
enum Ballot {
    Asked,
    Voted(Vote),
    /// The token was sent to the node, and it has not answered.
    Raising(Given),
    /// It raised its counter while its vote was ours.
    Raised(Given),
    /// It had voted for us and refused to raise its counter: the vote has ended, or a token at least as large
    /// was granted.
    Withdrawn,
    Failed(BackendError),
}

impl Round {
    pub(super) fn new(quorum: Quorum) -> Self {
        let ballots = (0..quorum.nodes).map(|_| Ballot::Asked).collect();
        Self { quorum, ballots, token: None }
    }

    /// Records a node's answer to the first phase.
    pub(super) fn voted(&mut self, node: usize, answer: Result<Vote, BackendError>) {
        self.ballots[node] = answer.map_or_else(Ballot::Failed, Ballot::Voted);
    }

    /// Records a node's answer to the second phase: true if it raised its counter.
    pub(super) fn raised(&mut self, node: usize, answer: Result<bool, BackendError>) {
        self.ballots[node] = match (&self.ballots[node], answer) {
            (Ballot::Raising(given), Ok(true)) => Ballot::Raised(*given),
            (_, Ok(_)) => Ballot::Withdrawn,
            (_, Err(error)) => Ballot::Failed(error),
        };
    }

    /// Returns the next node that must raise its counter, and the token; `None` before a majority has voted
    /// for us. The token is chosen then and does not change: later votes get the same one.
    pub(super) fn next_raise(&mut self) -> Option<(usize, FencingToken)> {
        let given = || self.ballots.iter().filter_map(Ballot::given);
        if self.token.is_none() && given().count() >= self.quorum.needed() {
            self.token = given().map(|given| given.lowest).max();
        }
        let token = self.token.filter(|_| self.is_open())?;
        let numbered = |(node, ballot): (usize, &Ballot)| Some((node, ballot.given()?));
        let (next, given) = self.ballots.iter().enumerate().find_map(numbered)?;
        self.ballots[next] = Ballot::Raising(given);
        Some((next, token))
    }

    /// Returns the outcome of the round begun at `began`, once no further answer can change it.
    pub(super) fn outcome(&self, began: Instant) -> Option<Result<Answer, BackendError>> {
        if let Some(granted) = self.granted(began) {
            return Some(Ok(granted));
        }
        if self.is_open() {
            return None;
        }
        let failures: Vec<_> = self.ballots.iter().filter_map(Ballot::failure).collect();
        let waiting = self.count(|ballot| matches!(ballot, Ballot::Asked | Ballot::Raising(_)));
        let answered = self.quorum.nodes - waiting - failures.len();
        if answered >= self.quorum.needed() {
            return Some(Ok(Answer::Taken { left: self.holder_left() }));
        }
        (answered + waiting < self.quorum.needed()).then(|| Err(self.quorum.missed(answered, &failures)))
    }

    /// Returns the grant, if a majority has raised its counter. It lives while a majority of the votes does.
    fn granted(&self, began: Instant) -> Option<Answer> {
        let token = self.token?;
        let raised = |ballot: &Ballot| match ballot {
            Ballot::Raised(given) => Some(given.until),
            _ => None,
        };
        let mut ends: Vec<_> = self.ballots.iter().filter_map(raised).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        let until = ends.get(self.quorum.needed() - 1)?;
        Some(Answer::Granted { token, since: began, left: until.saturating_since(began) })
    }

    /// Returns whether a grant is still possible.
    fn is_open(&self) -> bool {
        let lost = |ballot: &Ballot| {
            matches!(ballot, Ballot::Voted(Vote::Taken { .. }) | Ballot::Withdrawn | Ballot::Failed(_))
        };
        self.count(lost) < self.quorum.blocking()
    }

    /// Returns the time until a majority of the votes is free, if one owner has a majority now. After a split
    /// vote there is none: all losers release their votes at once.
    fn holder_left(&self) -> Option<Duration> {
        let has_majority =
            |owner: &str| self.count(|ballot| ballot.taken_by() == Some(owner)) >= self.quorum.needed();
        if !self.ballots.iter().filter_map(Ballot::taken_by).any(has_majority) {
            return None;
        }
        let mut frees: Vec<_> = self.ballots.iter().filter_map(Ballot::free_in).collect();
        frees.sort_unstable();
        frees.get(self.quorum.needed() - 1).copied()
    }

    fn count(&self, is: impl Fn(&Ballot) -> bool) -> usize {
        self.ballots.iter().filter(|ballot| is(ballot)).count()
    }
}

impl Ballot {
    fn given(&self) -> Option<Given> {
        match self {
            Self::Voted(Vote::Given(given)) => Some(*given),
            _ => None,
        }
    }

    /// Returns the other owner that has the vote, if it is known.
    fn taken_by(&self) -> Option<&str> {
        match self {
            Self::Voted(Vote::Taken { by, .. }) => by.as_deref(),
            _ => None,
        }
    }

    fn failure(&self) -> Option<&BackendError> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the time until the vote is free, if it is known.
    fn free_in(&self) -> Option<Duration> {
        match self {
            Self::Voted(Vote::Taken { left, .. }) => *left,
            Self::Voted(Vote::Given(_)) | Self::Raising(_) | Self::Raised(_) | Self::Withdrawn => {
                Some(Duration::ZERO)
            }
            Self::Asked | Self::Failed(_) => None,
        }
    }
}

/// The answers to a renewal or a release: the nodes that had our vote.
#[derive(Debug)]
pub(super) struct Tally {
    quorum: Quorum,
    yes: usize,
    no: usize,
    failures: Vec<BackendError>,
}

impl Tally {
    pub(super) fn new(quorum: Quorum) -> Self {
        Self { quorum, yes: 0, no: 0, failures: Vec::new() }
    }

    /// Records one node's answer: true if the vote was ours.
    pub(super) fn answered(&mut self, answer: Result<bool, BackendError>) {
        match answer {
            Ok(true) => self.yes += 1,
            Ok(false) => self.no += 1,
            Err(error) => self.failures.push(error),
        }
    }

    /// Returns whether a majority of votes was ours, as soon as the answers decide it.
    pub(super) fn majority(&self) -> Option<Result<bool, BackendError>> {
        if self.yes >= self.quorum.needed() {
            return Some(Ok(true));
        }
        if self.no >= self.quorum.blocking() {
            return Some(Ok(false));
        }
        (self.waiting() == 0).then(|| Err(self.missed()))
    }

    /// As [`Self::majority`], for a release. The lease has ended when the votes that may remain are no
    /// majority, whether or not the other nodes answer. It was ours until now unless a majority denies it.
    pub(super) fn released(&self) -> Option<Result<bool, BackendError>> {
        match self.majority() {
            Some(Err(_)) if self.yes + self.no >= self.quorum.blocking() => Some(Ok(true)),
            decided => decided,
        }
    }

    fn missed(&self) -> BackendError {
        self.quorum.missed(self.yes + self.no, &self.failures.iter().collect::<Vec<_>>())
    }

    fn waiting(&self) -> usize {
        self.quorum.nodes - self.yes - self.no - self.failures.len()
    }
}

#[cfg(test)]
mod tests;
