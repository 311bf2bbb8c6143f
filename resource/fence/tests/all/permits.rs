//! The rule for the permits of a semaphore, against a model of the lock server and all accepted requests, and
//! for a mutex against the rule as it was without permits.

use crate::mutex::MutexFence;
use dlock::FencingToken;
use fence::{
    BESIDE_MAX, Beside, BodyDigest, Fence, Fencing, Guard, Mark, MaxJump, OwnerToken, Permit, Position,
    Refusal, WriteOutcome,
};
use proptest::prelude::*;

const ON: Fencing = Fencing::On;
/// The place of a plain write.
const PLAIN: u64 = u64::MAX;

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn beside(tokens: &[u64]) -> Beside {
    Beside::new(tokens.iter().copied().map(token)).unwrap()
}

fn mark(number: u64, place: u64, owner: Option<&str>) -> Mark {
    let owner = owner.map(|name| OwnerToken::new(name).unwrap());
    Mark { position: Position::from_parts(token(number), place), owner }
}

/// Sends a claim (place 0) or a write; returns the refusal, if there is one.
fn ask(fence: &mut Fence, mark: &Mark, beside: &Beside, fencing: Fencing) -> Result<(), Refusal> {
    let Mark { position, owner } = mark;
    if position.seq() == 0 {
        return fence.claim_beside(mark, beside, fencing);
    }
    let guard = Guard::from_parts(position.token().as_u64(), position.seq()).unwrap();
    // No body is sent twice, so no write is a retry.
    let digest = BodyDigest::of(&fence.version.to_be_bytes());
    match fence.write_beside(guard, beside, owner.as_ref(), digest, fencing) {
        WriteOutcome::Accepted(receipt) => {
            assert_eq!(receipt.max_fence, fence.max_fence());
            Ok(())
        }
        WriteOutcome::Refused(refusal) => Err(refusal),
        WriteOutcome::Repeated(receipt) => panic!("no write is a retry: {receipt:?}"),
    }
}

/// A step of a semaphore's life. A number picks a grant.
#[derive(Clone, Debug)]
enum Step {
    Grant,
    End(usize),
    Ask { grant: usize, place: u64, owner: Option<&'static str> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let owners = prop_oneof![2 => Just(None), 2 => Just(Some("a")), 1 => Just(Some("b"))];
    let step = prop_oneof![
        2 => Just(Step::Grant),
        1 => (0..64usize).prop_map(Step::End),
        6 => (0..64usize, prop_oneof![Just(0), 1..4u64, Just(PLAIN)], owners)
            .prop_map(|(grant, place, owner)| Step::Ask { grant, place, owner }),
    ];
    prop::collection::vec(step, 0..60)
}

/// A grant by the model of a lock server: its token, and those of the other live permits at that time.
struct Grant {
    token: u64,
    beside: Vec<u64>,
    is_live: bool,
}

/// A lock server, and all requests that the resource has accepted.
#[derive(Default)]
struct Semaphore {
    grants: Vec<Grant>,
    accepted: Vec<Mark>,
}

impl Semaphore {
    fn grant(&mut self) {
        let live = self.grants.iter().filter(|grant| grant.is_live);
        let beside = live.map(|grant| grant.token).collect();
        self.grants.push(Grant { token: 2 * self.grants.len() as u64 + 1, beside, is_live: true });
    }

    /// Returns the grant that a number picks, of the last eight.
    fn pick(&mut self, number: usize) -> Option<&mut Grant> {
        let recent = self.grants.len().min(8);
        self.grants.iter_mut().rev().nth(number.checked_rem(recent)?)
    }

    /// Judges by the records of the lock server and by all accepted requests.
    fn judge(&self, asked: &Mark) -> Result<(), Refusal> {
        let got = asked.position.token();
        let Some(seen) = self.accepted.iter().map(|past| past.position.token()).max() else { return Ok(()) };
        let newest = self.grants.iter().find(|grant| grant.token == seen.as_u64()).unwrap();
        if got < seen && !newest.beside.contains(&got.as_u64()) {
            return Err(Refusal::Stale { seen, got });
        }
        for past in self.accepted.iter().filter(|past| past.position.token() == got) {
            match (&past.owner, &asked.owner) {
                (Some(holder), Some(owner)) if holder != owner => {
                    return Err(Refusal::ForeignOwner { seen, got });
                }
                (Some(_), None) | (None, Some(_)) => return Err(Refusal::Stale { seen, got }),
                _ if past.position >= asked.position && asked.position.seq() > 0 => {
                    return Err(Refusal::Stale { seen, got });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn permits_are_judged_by_the_record_of_the_lock_server(steps in steps()) {
        let (mut fence, mut semaphore) = (Fence::default(), Semaphore::default());
        for step in &steps {
            match step {
                Step::Grant => semaphore.grant(),
                Step::End(number) => {
                    if let Some(grant) = semaphore.pick(*number) {
                        grant.is_live = false;
                    }
                }
                Step::Ask { grant, place, owner } => {
                    let Some(grant) = semaphore.pick(*grant) else { continue };
                    let (asked, set) = (mark(grant.token, *place, *owner), beside(&grant.beside));
                    let expected = semaphore.judge(&asked);
                    prop_assert_eq!(ask(&mut fence, &asked, &set, ON), expected, "{:?}", step);
                    if expected.is_ok() {
                        semaphore.accepted.push(asked);
                    }
                }
            }
        }
    }

    /// Each permit numbers its writes, so that nothing but its token can be the reason of a refusal.
    #[test]
    fn a_live_permit_is_never_refused_and_one_outside_the_set_always(steps in steps()) {
        let (mut fence, mut semaphore) = (Fence::default(), Semaphore::default());
        let mut writes = 0;
        for step in &steps {
            match step {
                Step::Grant => semaphore.grant(),
                Step::End(number) => {
                    if let Some(grant) = semaphore.pick(*number) {
                        grant.is_live = false;
                    }
                }
                Step::Ask { grant, .. } => {
                    let Some(grant) = semaphore.pick(*grant) else { continue };
                    let (own, set, is_live) = (grant.token, beside(&grant.beside), grant.is_live);
                    let highest = fence.max_fence().map_or(0, FencingToken::as_u64);
                    let newest = semaphore.grants.iter().find(|grant| grant.token == highest);
                    let had_ended = newest.is_some_and(|newest| !newest.beside.contains(&own));
                    writes += 1;
                    let outcome = ask(&mut fence, &mark(own, writes, None), &set, ON);
                    prop_assert!(!is_live || outcome.is_ok(), "{own} is live: {outcome:?}");
                    let is_stale = own < highest && had_ended;
                    prop_assert_eq!(outcome.is_err(), is_stale, "{} at {}: {:?}", own, highest, outcome);
                }
            }
        }
    }

    /// Whatever sets clients send: the fence keeps its order and its bound, and never goes back.
    #[test]
    fn any_sets_leave_the_fence_in_order(
        asks in prop::collection::vec(
            (
                1..9u64,
                0..4u64,
                prop_oneof![Just(None), Just(Some("a"))],
                prop::collection::vec(1..12u64, 0..6),
            ),
            0..40,
        ),
        off: bool,
    ) {
        let (mut fence, fencing) = (Fence::default(), if off { Fencing::Off } else { ON });
        for (number, place, owner, set) in &asks {
            let before = fence.clone();
            let outcome = ask(&mut fence, &mark(*number, *place, *owner), &beside(set), fencing);
            if outcome.is_err() {
                prop_assert_eq!(&fence, &before, "a refused request changes nothing");
            }
            prop_assert!(fence.max_fence() >= before.max_fence());
            prop_assert!(fence.beside.is_sorted_by(|a, b| a.token() < b.token()), "{:?}", fence.beside);
            prop_assert!(fence.beside.iter().all(|permit| Some(permit.token()) < fence.max_fence()));
            if fence.max_fence() == before.max_fence() {
                let tokens = |fence: &Fence| fence.beside.iter().map(Permit::token).collect::<Vec<_>>();
                prop_assert_eq!(tokens(&fence), tokens(&before), "only a higher token replaces the set");
            }
            for (permit, old) in fence.beside.iter().filter_map(|permit| {
                Some((permit, before.beside.iter().find(|old| old.token() == permit.token())?))
            }) {
                let position = |permit: &Permit| permit.mark().map(|mark| mark.position);
                prop_assert!(position(permit) >= position(old), "a position never goes back");
            }
        }
    }

    #[test]
    fn a_mutex_is_judged_as_before(
        asks in prop::collection::vec(
            (0..5u64, 0..4u64, prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))], 0..2u8, 0..12u8),
            0..40,
        ),
        off: bool,
    ) {
        let (mut fence, mut old) = (Fence::default(), MutexFence::default());
        let fencing = if off { Fencing::Off } else { ON };
        for (number, place, owner, body, what) in asks {
            let owner = owner.map(|name| OwnerToken::new(name).unwrap());
            let digest = BodyDigest::of(&[body]);
            match (what, FencingToken::new(number), place) {
                // An operator sets the fence.
                (0, to, _) => {
                    let from = old.max_fence();
                    prop_assert_eq!(fence.set(from, to), Ok(()));
                    old.set(to);
                }
                (_, Some(own), 0) => {
                    let mark = Mark { position: Position::claim(own), owner };
                    prop_assert_eq!(fence.claim(&mark, fencing), old.claim(&mark, fencing));
                }
                (_, _, place) => {
                    let place = if place == 3 { PLAIN } else { place };
                    let guard = Guard::from_parts(number, place).unwrap();
                    let expected = old.write(guard, owner.as_ref(), digest, fencing);
                    prop_assert_eq!(fence.write(guard, owner.as_ref(), digest, fencing), expected);
                }
            }
            prop_assert_eq!(&fence.highest, &old.highest);
            prop_assert_eq!(&fence.last_write, &old.last_write);
            prop_assert_eq!(fence.version, old.version);
            prop_assert!(fence.beside.is_empty());
        }
    }
}

/// The example of the task: 7 and 9 are live, and a write of 7 comes after one of 9.
#[test]
fn a_live_permit_writes_after_a_newer_one() {
    let mut fence = Fence::default();
    assert_eq!(ask(&mut fence, &mark(9, PLAIN, None), &beside(&[7]), ON), Ok(()));
    assert_eq!(ask(&mut fence, &mark(7, PLAIN, None), &Beside::NONE, ON), Ok(()));
    let stale = |got| Err(Refusal::Stale { seen: token(9), got: token(got) });
    assert_eq!(ask(&mut fence, &mark(8, PLAIN, None), &beside(&[7]), ON), stale(8), "8 had ended");
    assert_eq!(ask(&mut fence, &mark(7, PLAIN, None), &Beside::NONE, ON), stale(7), "a duplicate");
    assert_eq!(fence.max_fence(), Some(token(9)));
}

#[test]
fn a_permit_that_ended_is_refused_once_a_newer_one_was_there() {
    let mut fence = Fence::default();
    ask(&mut fence, &mark(9, 1, None), &beside(&[7]), ON).unwrap();
    // 7 ends, 12 is granted beside 9, and has not reached the resource.
    assert_eq!(ask(&mut fence, &mark(7, 1, None), &Beside::NONE, ON), Ok(()));
    ask(&mut fence, &mark(12, 0, None), &beside(&[9]), ON).unwrap();
    let late = ask(&mut fence, &mark(7, 2, None), &Beside::NONE, ON);
    assert_eq!(late, Err(Refusal::Stale { seen: token(12), got: token(7) }));
    assert_eq!(ask(&mut fence, &mark(9, 2, None), &beside(&[7]), ON), Ok(()));
}

#[test]
fn position_and_owner_of_a_permit_outlive_newer_tokens() {
    let mut fence = Fence::default();
    ask(&mut fence, &mark(7, 2, Some("a")), &Beside::NONE, ON).unwrap();
    ask(&mut fence, &mark(9, 1, Some("b")), &beside(&[7]), ON).unwrap();
    ask(&mut fence, &mark(12, 1, Some("c")), &beside(&[7, 9]), ON).unwrap();
    let (seen, got) = (token(12), token(7));
    for (place, owner, refusal) in [
        (2, Some("a"), Refusal::Stale { seen, got }),
        (3, Some("b"), Refusal::ForeignOwner { seen, got }),
        (3, None, Refusal::Stale { seen, got }),
    ] {
        let outcome = ask(&mut fence, &mark(7, place, owner), &Beside::NONE, ON);
        assert_eq!(outcome, Err(refusal), "{place} of {owner:?}");
    }
    assert_eq!(ask(&mut fence, &mark(7, 3, Some("a")), &Beside::NONE, ON), Ok(()));
}

#[test]
fn a_claim_below_the_highest_token_is_kept_and_may_be_repeated() {
    let mut fence = Fence::default();
    ask(&mut fence, &mark(9, 0, None), &beside(&[7]), ON).unwrap();
    for _ in 0..2 {
        assert_eq!(ask(&mut fence, &mark(7, 0, Some("a")), &Beside::NONE, ON), Ok(()));
        assert_eq!(fence.beside, [Permit::Seen(mark(7, 0, Some("a")))]);
    }
    let foreign = ask(&mut fence, &mark(7, 1, Some("b")), &Beside::NONE, ON);
    assert_eq!(foreign, Err(Refusal::ForeignOwner { seen: token(9), got: token(7) }));
}

#[test]
fn the_first_set_of_a_token_counts() {
    let mut fence = Fence::default();
    ask(&mut fence, &mark(9, 1, None), &beside(&[7, 9, 10]), ON).unwrap();
    assert_eq!(fence.beside, [Permit::Unseen(token(7))], "its own token and higher ones are ignored");
    ask(&mut fence, &mark(9, 2, None), &beside(&[5]), ON).unwrap();
    assert_eq!(fence.beside, [Permit::Unseen(token(7))]);
}

#[test]
fn a_retry_of_a_permit_is_known_until_another_one_writes() {
    let mut fence = Fence::default();
    let (owner, body) = (OwnerToken::new("a").unwrap(), BodyDigest::of(b"a"));
    ask(&mut fence, &mark(9, 0, None), &beside(&[7]), ON).unwrap();
    let mut write = |number, beside: &Beside| {
        fence.write_beside(Guard::token(token(number)), beside, Some(&owner), body, ON)
    };
    assert!(matches!(write(7, &Beside::NONE), WriteOutcome::Accepted(_)));
    assert!(matches!(write(7, &Beside::NONE), WriteOutcome::Repeated(_)));
    assert!(matches!(write(10, &beside(&[7])), WriteOutcome::Accepted(_)));
    let late = write(7, &Beside::NONE);
    assert_eq!(late, WriteOutcome::Refused(Refusal::Stale { seen: token(10), got: token(7) }));
}

#[test]
fn a_conditional_write_takes_no_account_of_permits() {
    let mut fence = Fence::default();
    let conditional = |fence: &mut Fence, expected, fencing| {
        fence.write_beside(Guard::Version { expected }, &beside(&[7]), None, BodyDigest::of(b"x"), fencing)
    };
    assert!(matches!(conditional(&mut fence, 0, ON), WriteOutcome::Accepted(_)));
    assert!(fence.beside.is_empty());
    ask(&mut fence, &mark(9, 1, None), &beside(&[7]), ON).unwrap();
    let fenced = WriteOutcome::Refused(Refusal::Fenced { seen: token(9) });
    assert_eq!(conditional(&mut fence, 2, ON), fenced);
    assert!(matches!(conditional(&mut fence, 2, Fencing::Off), WriteOutcome::Accepted(_)));
    assert_eq!(fence.beside, [Permit::Unseen(token(7))]);
}

#[test]
fn an_operator_who_sets_the_fence_clears_the_permits() {
    let mut fence = Fence::default();
    ask(&mut fence, &mark(9, 1, None), &beside(&[5, 7]), ON).unwrap();
    assert!(fence.set(Some(token(8)), Some(token(6))).is_err());
    assert_eq!(fence.beside.len(), 2, "a change that is refused clears nothing");
    fence.set(Some(token(9)), Some(token(6))).unwrap();
    assert!(fence.beside.is_empty());
    let late = ask(&mut fence, &mark(5, 1, None), &Beside::NONE, ON);
    assert_eq!(late, Err(Refusal::Stale { seen: token(6), got: token(5) }));
    assert_eq!(ask(&mut fence, &mark(10, 1, None), &beside(&[5]), ON), Ok(()));
    assert_eq!(ask(&mut fence, &mark(5, 1, None), &Beside::NONE, ON), Ok(()));
}

#[test]
fn without_fencing_permits_are_recorded_for_the_time_with_it() {
    let mut fence = Fence::default();
    ask(&mut fence, &mark(9, 1, None), &beside(&[7]), Fencing::Off).unwrap();
    ask(&mut fence, &mark(8, 1, None), &Beside::NONE, Fencing::Off).unwrap();
    ask(&mut fence, &mark(7, 2, None), &Beside::NONE, Fencing::Off).unwrap();
    assert_eq!(fence.beside, [Permit::Seen(mark(7, 2, None))]);
    assert!(ask(&mut fence, &mark(7, 2, None), &Beside::NONE, ON).is_err());
    assert_eq!(ask(&mut fence, &mark(7, 3, None), &Beside::NONE, ON), Ok(()));
}

#[test]
fn the_limit_of_a_jump_is_for_the_own_token() {
    let mut fence = Fence::default();
    let limit = Some(MaxJump::new(10, 10));
    let mut claim = |number, set: &[u64]| {
        fence.claim_beside_within(limit, &mark(number, 0, None), &beside(set), ON).map_err(Refusal::as_str)
    };
    assert_eq!(claim(11, &[7]), Err("jump"));
    assert_eq!(claim(9, &[7, 99]), Ok(()));
    assert_eq!(claim(7, &[]), Ok(()));
    assert_eq!(claim(20, &[9]), Err("jump"));
}

#[test]
fn a_fence_keeps_a_thousand_permits_at_most() {
    let mut fence = Fence::default();
    let set: Vec<u64> = (1..=BESIDE_MAX as u64).collect();
    for highest in [2000, 3000] {
        ask(&mut fence, &mark(highest, 1, None), &beside(&set), ON).unwrap();
        assert_eq!(fence.beside.len(), BESIDE_MAX);
    }
}
