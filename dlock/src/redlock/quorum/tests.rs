use proptest::prelude::*;

use super::*;

const BEGAN: Instant = Instant::from_nanos(1_000);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn given(lowest: u64, left: u64) -> Result<Vote, BackendError> {
    Ok(Vote::Given(Given { lowest: token(lowest), until: BEGAN + ms(left) }))
}

fn taken(left: u64, by: &str) -> Result<Vote, BackendError> {
    Ok(Vote::Taken { left: Some(ms(left)), by: Some(by.into()) })
}

fn round(votes: impl IntoIterator<Item = Result<Vote, BackendError>>) -> Round {
    let mut round = Round::new(Quorum { nodes: 5 });
    votes.into_iter().enumerate().for_each(|(node, vote)| round.voted(node, vote));
    round
}

fn told(round: &mut Round) -> Vec<(usize, u64)> {
    std::iter::from_fn(|| round.next_raise()).map(|(node, token)| (node, token.as_u64())).collect()
}

#[test]
fn a_majority_is_more_than_half() {
    for (nodes, needed, blocking) in [(3, 2, 2), (4, 3, 2), (5, 3, 3), (6, 4, 3), (7, 4, 4)] {
        let quorum = Quorum { nodes };
        assert_eq!((quorum.needed(), quorum.blocking()), (needed, blocking), "{nodes} nodes");
    }
}

#[test]
fn a_grant_needs_a_majority_of_votes_and_raises() {
    let mut round = round([given(11, 2000), given(1, 2000)]);
    assert_eq!(told(&mut round), []);
    round.voted(2, given(4, 2000));
    assert_eq!(told(&mut round), [(0, 11), (1, 11), (2, 11)]);
    round.raised(0, Ok(true));
    round.raised(1, Ok(true));
    assert_eq!(round.outcome(BEGAN), None);
    // A late vote gets the same token, though it would have asked for a larger one.
    round.voted(4, given(30, 2000));
    assert_eq!(told(&mut round), [(4, 11)]);
    round.raised(4, Ok(false));
    assert_eq!(round.outcome(BEGAN), None);
    round.raised(2, Ok(true));
    let granted = Answer::Granted { token: token(11), since: BEGAN, left: ms(2000) };
    assert_eq!(round.outcome(BEGAN), Some(Ok(granted)));
}

#[test]
fn a_grant_lives_while_a_majority_of_votes_does() {
    let mut round = round([given(1, 2000), given(1, 700), given(1, 900), given(1, 300)]);
    for (node, _) in told(&mut round) {
        round.raised(node, Ok(true));
    }
    let Some(Ok(Answer::Granted { left, .. })) = round.outcome(BEGAN) else { panic!("{round:?}") };
    assert_eq!(left, ms(700), "then 0 and 2 are left");
}

#[test]
fn a_majority_of_refusals_names_the_holder_at_once() {
    let round = round([taken(900, "b"), taken(700, "b"), taken(800, "b")]);
    assert_eq!(round.outcome(BEGAN), Some(Ok(Answer::Taken { left: Some(ms(900)) })));
}

#[test]
fn a_holders_end_is_when_a_majority_is_free() {
    let round = round([given(1, 2000), given(1, 2000), taken(900, "b"), taken(700, "b"), taken(800, "b")]);
    assert_eq!(round.outcome(BEGAN), Some(Ok(Answer::Taken { left: Some(ms(700)) })));
}

#[test]
fn a_split_vote_has_no_holder_to_wait_for() {
    let round = round([given(1, 2000), given(1, 2000), taken(1999, "b"), taken(1999, "b"), taken(1999, "c")]);
    assert_eq!(round.outcome(BEGAN), Some(Ok(Answer::Taken { left: None })));
}

#[test]
fn without_a_quorum_the_error_says_how_many_answered() {
    let mut round = round([given(1, 2000), taken(5, "b"), Err(BackendError::NoAnswer)]);
    assert_eq!(round.outcome(BEGAN), None);
    round.voted(3, Err(BackendError::NoAnswer));
    assert_eq!(round.outcome(BEGAN), None, "the last may give the quorum that says who has it");
    round.voted(4, Err(BackendError::Disconnected { reason: "reset".into() }));
    let Some(Err(error)) = round.outcome(BEGAN) else { panic!("{round:?}") };
    assert!(matches!(error, BackendError::NoQuorum { answered: 2, nodes: 5, needed: 3, .. }));
    assert!(error.is_passing());
    assert!(
        error.to_string().starts_with("no quorum: 2 of 5 lock servers answered, 3 are needed"),
        "{error}"
    );
}

#[test]
fn only_refusals_that_block_a_majority_are_final() {
    let refused = || Err(BackendError::Refused { message: "NOAUTH".into(), passing: false });
    let is_passing = |last| {
        let round = round([refused(), refused(), Err(BackendError::NoAnswer), last]);
        round.outcome(BEGAN).unwrap().unwrap_err().is_passing()
    };
    assert!(is_passing(Err(BackendError::NoAnswer)));
    assert!(!is_passing(refused()));
}

#[test]
fn votes_that_end_between_the_phases_are_no_grant() {
    let mut round = round([given(1, 2000), given(1, 2000), given(1, 2000)]);
    for (node, _) in told(&mut round) {
        round.raised(node, Ok(false));
    }
    assert_eq!(told(&mut round), []);
    assert_eq!(round.outcome(BEGAN), Some(Ok(Answer::Taken { left: None })));
}

fn tally(answers: impl IntoIterator<Item = Option<bool>>) -> Tally {
    let mut tally = Tally::new(Quorum { nodes: 5 });
    let answers = answers.into_iter().map(|answer| answer.ok_or(BackendError::NoAnswer));
    answers.for_each(|answer| tally.answered(answer));
    tally
}

#[test]
fn one_slow_node_does_not_decide_a_renewal() {
    let (yes, no, silent) = (Some(true), Some(false), None);
    assert_eq!(tally([yes, yes, yes]).majority(), Some(Ok(true)));
    assert_eq!(tally([silent, yes, silent, yes, yes]).majority(), Some(Ok(true)));
    assert_eq!(tally([no, yes, no, yes]).majority(), None);
    assert_eq!(tally([no, no, no]).majority(), Some(Ok(false)));
    let error = tally([no, no, yes, yes, silent]).majority().unwrap().unwrap_err();
    assert!(matches!(error, BackendError::NoQuorum { answered: 4, .. }));
}

#[test]
fn a_release_is_done_when_no_majority_can_remain() {
    let (yes, no, silent) = (Some(true), Some(false), None);
    assert_eq!(tally([yes, yes, yes]).released(), Some(Ok(true)));
    assert_eq!(tally([yes, yes, no, no]).released(), None);
    assert_eq!(tally([yes, yes, no, no, silent]).released(), Some(Ok(true)));
    assert_eq!(tally([yes, yes, no, no, no]).released(), Some(Ok(false)));
    assert!(tally([yes, yes, silent, silent, silent]).released().unwrap().is_err());
}

proptest! {
    /// Every round ends with the last answer at the latest, and its outcome never changes, for all answers in
    /// any order.
    #[test]
    fn every_round_ends_and_keeps_its_outcome(
        nodes in 3..8usize, answers in proptest::collection::vec((0..8usize, 0..4u8), 40),
    ) {
        let mut round = Round::new(Quorum { nodes });
        let (mut votes, mut raises) = ((0..nodes).collect::<Vec<_>>(), Vec::new());
        let mut said = None;
        for (pick, kind) in answers {
            let failure = || BackendError::NoAnswer;
            if let Some(node) = (!votes.is_empty()).then(|| votes.remove(pick % votes.len())) {
                round.voted(node, match kind { 0 => Err(failure()), 1 => taken(9, "b"), _ => given(u64::from(kind), 9) });
            } else if let Some(node) = (!raises.is_empty()).then(|| raises.remove(pick % raises.len())) {
                round.raised(node, match kind { 0 => Err(failure()), 1 => Ok(false), _ => Ok(true) });
            }
            raises.extend(std::iter::from_fn(|| round.next_raise()).map(|(node, _)| node));
            let outcome = round.outcome(BEGAN).map(|outcome| outcome.map_err(|_| ()));
            let kind = |outcome: &Result<Answer, ()>| match outcome {
                Ok(Answer::Granted { token, .. }) => Ok(Some(*token)),
                Ok(_) => Ok(None),
                Err(()) => Err(()),
            };
            if let (Some(said), Some(now)) = (&said, &outcome) {
                prop_assert_eq!(kind(said), kind(now));
            }
            prop_assert!(said.is_none() || outcome.is_some());
            said = outcome.or(said);
        }
        prop_assert!(votes.is_empty() && raises.is_empty() && said.is_some());
    }
}
