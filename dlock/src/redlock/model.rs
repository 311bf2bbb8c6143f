//! The fencing tokens of Redlock on a pure model: nodes that are a key and a counter, and messages that
//! arrive in any order, late, or not at all. The rounds are the library's own.

use dlock_runtime::Instant;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::quorum::{Given, Quorum, Round, Vote};
use crate::backend::Answer;
use crate::error::BackendError;
use crate::token::FencingToken;

const NODES: usize = 5;
const START: Instant = Instant::from_nanos(0);

/// The rule by which a token is chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The library's rule: above the largest count of a majority, and a majority's counters raised to it.
    Raised,
    /// Each node counts its own votes, and the largest count of the majority is the token.
    LargestCount,
}

/// The data of a node.
#[derive(Clone, Copy, Default)]
struct Node {
    owner: Option<usize>,
    count: u64,
}

/// A request or an answer in flight.
#[derive(Clone, Copy)]
struct Message {
    attempt: usize,
    /// The round of the attempt.
    round: u32,
    node: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Vote,
    Raise(FencingToken),
    /// Given, with the lowest token.
    Voted(Option<FencingToken>),
    Raised(bool),
    Lost {
        raise: bool,
    },
}

/// One owner, which may begin again when a round has failed.
struct Attempt {
    round: Round,
    number: u32,
    began: usize,
    ended: bool,
}

/// A token that was granted, and the steps at which its round began and returned.
#[derive(Clone, Copy, Debug)]
struct Grant {
    token: u64,
    began: usize,
    returned: usize,
}

/// One step. Its numbers choose among the possible messages, attempts and nodes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    /// The owner of a failed round retries with the same owner token.
    Again(usize),
    Move(usize),
    Lose(usize),
    Expire(usize),
    /// A node loses its data. The tokens promise nothing then.
    Forget(usize),
}

struct Model {
    rule: Rule,
    nodes: [Node; NODES],
    attempts: Vec<Attempt>,
    messages: Vec<Message>,
    grants: Vec<Grant>,
    now: usize,
}

impl Model {
    fn new(rule: Rule) -> Self {
        let (attempts, messages, grants) = Default::default();
        Self { rule, nodes: Default::default(), attempts, messages, grants, now: 0 }
    }

    fn run(rule: Rule, steps: &[Step]) -> Vec<Grant> {
        let mut model = Self::new(rule);
        steps.iter().for_each(|step| model.step(*step));
        model.grants
    }

    fn step(&mut self, step: Step) {
        self.now += 1;
        match step {
            Step::Begin => self.begin(),
            Step::Again(pick) => self.again(pick),
            Step::Move(pick) if !self.messages.is_empty() => {
                let message = self.messages.remove(pick % self.messages.len());
                self.advance(message);
            }
            Step::Lose(pick) if !self.messages.is_empty() => {
                let at = pick % self.messages.len();
                let raise = matches!(self.messages[at].kind, Kind::Raise(_) | Kind::Raised(_));
                self.messages[at].kind = Kind::Lost { raise };
            }
            Step::Move(_) | Step::Lose(_) => {}
            Step::Expire(node) => self.nodes[node % NODES].owner = None,
            Step::Forget(node) => self.nodes[node % NODES] = Node::default(),
        }
    }

    fn begin(&mut self) {
        let round = Round::new(Quorum { nodes: NODES });
        self.attempts.push(Attempt { round, number: 0, began: self.now, ended: false });
        self.ask(self.attempts.len() - 1);
    }

    fn again(&mut self, pick: usize) {
        let count = self.attempts.len().max(1);
        let Some(attempt) = self.attempts.get_mut(pick % count).filter(|attempt| attempt.ended) else {
            return;
        };
        attempt.round = Round::new(Quorum { nodes: NODES });
        (attempt.number, attempt.began, attempt.ended) = (attempt.number + 1, self.now, false);
        self.ask(pick % count);
    }

    fn ask(&mut self, attempt: usize) {
        let round = self.attempts[attempt].number;
        self.messages.extend((0..NODES).map(|node| Message { attempt, round, node, kind: Kind::Vote }));
    }

    /// Executes a request, or reads an answer.
    fn advance(&mut self, message: Message) {
        let Message { attempt, node, kind, .. } = message;
        let answer = match kind {
            Kind::Vote => Kind::Voted(self.vote(attempt, node)),
            Kind::Raise(token) => Kind::Raised(self.raise(attempt, node, token)),
            _ => return self.read(message),
        };
        self.messages.push(Message { kind: answer, ..message });
    }

    /// Does what `vote.lua` does.
    fn vote(&mut self, attempt: usize, at: usize) -> Option<FencingToken> {
        let node = &mut self.nodes[at];
        if node.owner.is_some_and(|owner| owner != attempt) {
            return None;
        }
        let is_new = node.owner.replace(attempt).is_none();
        if self.rule == Rule::Raised {
            return FencingToken::new(node.count + 1);
        }
        node.count += u64::from(is_new);
        FencingToken::new(node.count)
    }

    /// Does what `raise.lua` does.
    fn raise(&mut self, attempt: usize, at: usize, token: FencingToken) -> bool {
        let node = &mut self.nodes[at];
        let raised = node.owner == Some(attempt) && node.count < token.as_u64();
        if raised {
            node.count = token.as_u64();
        }
        raised
    }

    fn read(&mut self, Message { attempt: number, round, node, kind }: Message) {
        let attempt = &mut self.attempts[number];
        if attempt.ended || attempt.number != round {
            return;
        }
        let taken = Vote::Taken { left: None, by: None };
        match kind {
            Kind::Voted(lowest) => {
                let given = lowest.map(|lowest| Vote::Given(Given { lowest, until: START }));
                attempt.round.voted(node, Ok(given.unwrap_or(taken)));
            }
            Kind::Raised(raised) => attempt.round.raised(node, Ok(raised)),
            Kind::Lost { raise: false } => attempt.round.voted(node, Err(BackendError::NoAnswer)),
            _ => attempt.round.raised(node, Err(BackendError::NoAnswer)),
        }
        self.go_on(number, round);
    }

    fn go_on(&mut self, number: usize, round: u32) {
        let attempt = &mut self.attempts[number];
        while let Some((node, token)) = attempt.round.next_raise() {
            if self.rule == Rule::LargestCount {
                return self.grant(number, token);
            }
            self.messages.push(Message { attempt: number, round, node, kind: Kind::Raise(token) });
        }
        match attempt.round.outcome(START) {
            Some(Ok(Answer::Granted { token, .. })) => self.grant(number, token),
            Some(_) => attempt.ended = true,
            None => {}
        }
    }

    fn grant(&mut self, number: usize, token: FencingToken) {
        let attempt = &mut self.attempts[number];
        attempt.ended = true;
        self.grants.push(Grant { token: token.as_u64(), began: attempt.began, returned: self.now });
    }
}

/// Returns two grants that break the promise, if there are any.
fn broken(grants: &[Grant]) -> Option<(Grant, Grant)> {
    let pairs = grants
        .iter()
        .enumerate()
        .flat_map(|(at, one)| grants[at + 1..].iter().map(move |other| (one, other)));
    let mut wrong = pairs.filter(|(one, other)| {
        one.token == other.token || one.returned < other.began && other.token < one.token
    });
    wrong.next().map(|(one, other)| (*one, *other))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Begin),
        1 => any::<usize>().prop_map(Step::Again),
        40 => any::<usize>().prop_map(Step::Move),
        // Moves the oldest message most often, so that most rounds complete.
        40 => Just(Step::Move(0)),
        1 => any::<usize>().prop_map(Step::Lose),
        8 => any::<usize>().prop_map(Step::Expire),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..400)
}

fn search(rule: Rule, steps: impl Strategy<Value = Vec<Step>>) -> Result<(), TestError<Vec<Step>>> {
    let config = Config { cases: 2000, failure_persistence: None, max_shrink_iters: 1, ..Config::default() };
    TestRunner::new(config).run(&steps, |steps| {
        let grants = Model::run(rule, &steps);
        prop_assert!(broken(&grants).is_none(), "{:?}", broken(&grants));
        Ok(())
    })
}

#[test]
fn tokens_of_later_grants_are_larger() {
    let result = search(Rule::Raised, steps());
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn the_model_grants_often() {
    let mut runner = TestRunner::deterministic();
    let mut orders = 0;
    for _ in 0..200 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let grants = Model::run(Rule::Raised, &steps);
        let after = |one: &Grant| grants.iter().filter(|other| one.returned < other.began).count();
        orders += grants.iter().map(after).sum::<usize>();
    }
    assert!(orders > 200, "pairs of grants one after the other: {orders}");
}

#[test]
fn the_largest_count_of_a_majority_is_no_token() {
    assert!(matches!(search(Rule::LargestCount, steps()), Err(TestError::Fail(..))));
}

#[test]
fn a_node_that_loses_its_data_breaks_the_tokens() {
    let forgetful = prop_oneof![12 => step(), 1 => any::<usize>().prop_map(Step::Forget)];
    let steps = proptest::collection::vec(forgetful, 0..400);
    assert!(matches!(search(Rule::Raised, steps), Err(TestError::Fail(..))));
}

/// Delivers all messages of the attempt to and from `nodes`, and loses the rest.
fn carry(model: &mut Model, nodes: &[usize]) {
    model.messages.retain(|message| nodes.contains(&message.node));
    while !model.messages.is_empty() {
        model.step(Step::Move(0));
    }
}

/// Returns the tokens of A on nodes 1, 2 and 3, of which 1 has counted 10, and of B on 3, 4 and 5 afterwards.
fn tokens_of_two(rule: Rule) -> Vec<u64> {
    let mut model = Model::new(rule);
    model.nodes[0].count = 10;
    for nodes in [[0, 1, 2], [2, 3, 4]] {
        model.begin();
        carry(&mut model, &nodes);
        (0..NODES).for_each(|node| model.step(Step::Expire(node)));
    }
    model.grants.iter().map(|grant| grant.token).collect()
}

#[test]
fn two_majorities_that_share_one_node_keep_the_order() {
    assert_eq!(tokens_of_two(Rule::LargestCount), [11, 2]);
    assert_eq!(tokens_of_two(Rule::Raised), [11, 12]);
}

#[test]
fn a_shared_node_that_forgets_breaks_the_order() {
    let mut model = Model::new(Rule::Raised);
    model.nodes[0].count = 10;
    model.begin();
    carry(&mut model, &[0, 1, 2]);
    model.step(Step::Forget(2));
    model.begin();
    carry(&mut model, &[2, 3, 4]);
    assert_eq!(model.grants.iter().map(|grant| grant.token).collect::<Vec<_>>(), [11, 1]);
}

#[test]
fn a_token_raised_on_a_minority_is_not_granted_again() {
    let mut model = Model::new(Rule::Raised);
    model.begin();
    // All vote, and one raises before the others' votes have expired.
    (0..10).for_each(|_| model.step(Step::Move(0)));
    model.step(Step::Move(0));
    model.messages.iter().filter(|message| matches!(message.kind, Kind::Raise(_))).for_each(|message| {
        model.nodes[message.node].owner = None;
    });
    carry(&mut model, &[0, 1, 2, 3, 4]);
    assert!(model.grants.is_empty(), "votes that ended between the phases are none");
    model.step(Step::Again(0));
    carry(&mut model, &[0, 1, 2, 3, 4]);
    assert_eq!(model.grants[0].token, 2);
}

/// Executes or reads the messages of a round of `attempt` to and from `nodes`, until none is left.
fn serve(model: &mut Model, attempt: usize, round: u32, nodes: &[usize]) {
    let wanted = |message: &Message| {
        message.attempt == attempt && message.round == round && nodes.contains(&message.node)
    };
    while let Some(at) = model.messages.iter().position(wanted) {
        model.step(Step::Move(at));
    }
}

#[test]
fn a_node_that_raised_for_another_owner_does_not_confirm() {
    let mut model = Model::new(Rule::Raised);
    model.begin();
    // A's first round fails; its request to node 2 is still in flight.
    let others = model.messages.iter().enumerate().filter(|(_, message)| message.node != 2).map(|(at, _)| at);
    others.collect::<Vec<_>>().into_iter().for_each(|at| model.step(Step::Lose(at)));
    serve(&mut model, 0, 0, &[0, 1, 3, 4]);
    // Its second has the votes of 0, 1 and 2, and is about to raise them to 1.
    model.step(Step::Again(0));
    while !model.messages.iter().any(|message| matches!(message.kind, Kind::Raise(_))) {
        let vote = |message: &Message| message.round == 1 && message.node < 3;
        let at = model.messages.iter().position(vote).unwrap();
        model.step(Step::Move(at));
    }
    // The vote of 2 expires, and B is granted 1 by 2, 3 and 4.
    model.step(Step::Expire(2));
    model.messages.retain(|message| message.round == 0 || message.node < 3);
    model.begin();
    serve(&mut model, 1, 0, &[2, 3, 4]);
    assert_eq!(model.grants.iter().map(|grant| grant.token).collect::<Vec<_>>(), [1]);
    // B's vote expires too, and the late request makes 2 vote for A once more.
    model.step(Step::Expire(2));
    serve(&mut model, 0, 0, &[2]);
    assert_eq!((model.nodes[2].owner, model.nodes[2].count), (Some(0), 1));
    serve(&mut model, 0, 1, &[0, 1, 2]);
    assert_eq!(model.grants.len(), 1, "two grants of one token: {:?}", model.grants);
}
