//! Compares the fence rule with a model that keeps the whole history and judges by it.

use dlock::FencingToken;
use fence::{
    BodyDigest, Fence, Fencing, Guard, Mark, OwnerToken, Position, Receipt, Refusal, WriteOutcome, WriteSeq,
    judge,
};
use proptest::prelude::*;

/// A request. Its numbers are small, so that tokens, positions, owners and bodies are often equal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ask {
    token: u64,
    /// 0 is a claim, 4 a plain write.
    place: u64,
    owner: Option<&'static str>,
    body: &'static str,
}

impl Ask {
    fn is_claim(&self) -> bool {
        self.place == 0
    }

    fn mark(&self) -> Mark {
        let token = FencingToken::new(self.token).unwrap();
        let position = match self.place {
            0 => Position::claim(token),
            4 => Position::write(token, None),
            seq => Position::write(token, WriteSeq::new(seq)),
        };
        Mark { position, owner: self.owner.map(|name| OwnerToken::new(name).unwrap()) }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Accepted { version: u64 },
    Repeated { version: u64 },
    Stale,
    Foreign,
}

/// All accepted requests, in order.
#[derive(Default)]
struct Model(Vec<Ask>);

impl Model {
    fn ask(&mut self, ask: &Ask) -> Answer {
        let writes = || self.0.iter().filter(|past| !past.is_claim());
        let version = writes().count() as u64;
        if ask.owner.is_some() && writes().next_back() == Some(ask) {
            return Answer::Repeated { version };
        }
        let highest = self.0.iter().map(|past| past.token).max().unwrap_or(0);
        if ask.token < highest {
            return Answer::Stale;
        }
        for past in self.0.iter().filter(|past| past.token == ask.token) {
            match (past.owner, ask.owner) {
                (Some(holder), Some(owner)) if holder != owner => return Answer::Foreign,
                (Some(_), None) | (None, Some(_)) => return Answer::Stale,
                _ if past.place >= ask.place && !ask.is_claim() => return Answer::Stale,
                _ => {}
            }
        }
        self.0.push(ask.clone());
        Answer::Accepted { version: version + u64::from(!ask.is_claim()) }
    }
}

fn ask_fence(fence: &mut Fence, ask: &Ask, fencing: Fencing) -> Answer {
    let refused = |refusal: Refusal| match refusal {
        Refusal::Stale { .. } => Answer::Stale,
        Refusal::ForeignOwner { .. } => Answer::Foreign,
        other => panic!("a request with a token was refused for {other:?}"),
    };
    if ask.is_claim() {
        return match fence.claim(&ask.mark(), fencing) {
            Ok(()) => Answer::Accepted { version: fence.version },
            Err(refusal) => refused(refusal),
        };
    }
    let mark = ask.mark();
    let guard = guard_of(&mark);
    match fence.write(guard, mark.owner.as_ref(), BodyDigest::of(ask.body.as_bytes()), fencing) {
        WriteOutcome::Accepted(Receipt { version, .. }) => Answer::Accepted { version },
        WriteOutcome::Repeated(Receipt { version, .. }) => Answer::Repeated { version },
        WriteOutcome::Refused(refusal) => refused(refusal),
    }
}

/// Returns the guard of a write at `mark`.
fn guard_of(mark: &Mark) -> Guard {
    Guard::from_parts(mark.position.token().as_u64(), mark.position.seq()).unwrap()
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (1..5u64, 0..5u64, prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))], 0..2usize)
        .prop_map(|(token, place, owner, body)| Ask { token, place, owner, body: ["x", "y"][body] });
    // About every other request is sent twice: retries and duplicates.
    prop::collection::vec((ask, any::<bool>()), 0..40).prop_map(|asks| {
        asks.into_iter().flat_map(|(ask, twice)| vec![ask; if twice { 2 } else { 1 }]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_rule_agrees_with_the_model(asks in asks()) {
        let (mut fence, mut model) = (Fence::default(), Model::default());
        for ask in &asks {
            prop_assert_eq!(ask_fence(&mut fence, ask, Fencing::On), model.ask(ask), "{:?}", ask);
        }
    }

    #[test]
    fn accepted_writes_go_up_and_a_token_has_one_owner(asks in asks()) {
        let mut fence = Fence::default();
        let mut above: Option<Mark> = None;
        for ask in &asks {
            if !matches!(ask_fence(&mut fence, ask, Fencing::On), Answer::Accepted { .. }) {
                continue;
            }
            let mark = ask.mark();
            if let Some(above) = &above {
                prop_assert!(ask.is_claim() && mark.position.token() == above.position.token()
                    || mark.position > above.position, "{:?} after {:?}", mark, above);
                prop_assert!(mark.position.token() > above.position.token() || mark.owner == above.owner);
            }
            above = fence.highest.clone();
        }
    }

    #[test]
    fn a_refused_request_and_a_retry_change_nothing(asks in asks()) {
        let mut fence = Fence::default();
        for ask in &asks {
            let before = fence.clone();
            if !matches!(ask_fence(&mut fence, ask, Fencing::On), Answer::Accepted { .. }) {
                prop_assert_eq!(&fence, &before);
            }
        }
    }

    #[test]
    fn without_fencing_every_write_is_applied(asks in asks()) {
        let mut fence = Fence::default();
        for (at, ask) in asks.iter().enumerate() {
            let writes = asks[..=at].iter().filter(|ask| !ask.is_claim()).count() as u64;
            prop_assert_eq!(ask_fence(&mut fence, ask, Fencing::Off), Answer::Accepted { version: writes });
            let highest = asks[..=at].iter().map(|ask| ask.token).max();
            prop_assert_eq!(fence.max_fence().map(FencingToken::as_u64), highest);
        }
    }
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn owner(name: &str) -> Option<OwnerToken> {
    Some(OwnerToken::new(name).unwrap())
}

/// The hole that ARCHITECTURE.md describes: B acquires 34 and reads, then A's delayed write of 33 arrives.
#[test]
fn a_claim_refuses_the_older_holder_and_admits_its_own() {
    let mut fence = Fence::default();
    let body = BodyDigest::of(b"b");
    let write = |fence: &mut Fence, number, name| {
        fence.write(Guard::token(token(number)), owner(name).as_ref(), body, Fencing::On)
    };
    fence.claim(&Mark { position: Position::claim(token(34)), owner: owner("b") }, Fencing::On).unwrap();
    let late = write(&mut fence, 33, "a");
    assert_eq!(late, WriteOutcome::Refused(Refusal::Stale { seen: token(34), got: token(33) }));
    let own = write(&mut fence, 34, "b");
    assert_eq!(own, WriteOutcome::Accepted(Receipt { version: 1, max_fence: Some(token(34)) }));
}

/// A's reply is lost, B claims, A retries: the answer says that A's write was applied.
#[test]
fn a_retry_is_recognised_after_a_later_claim() {
    let mut fence = Fence::default();
    let (guard, owner_a, body) = (Guard::token(token(33)), owner("a"), BodyDigest::of(b"a"));
    fence.write(guard, owner_a.as_ref(), body, Fencing::On);
    fence.claim(&Mark { position: Position::claim(token(34)), owner: owner("b") }, Fencing::On).unwrap();
    let first_answer = Receipt { version: 1, max_fence: Some(token(33)) };
    assert_eq!(fence.write(guard, owner_a.as_ref(), body, Fencing::On), WriteOutcome::Repeated(first_answer));
}

#[test]
fn positions_order_by_token_then_claim_numbered_plain() {
    let last = WriteSeq::new(u64::MAX - 1);
    let ascending = [
        Position::claim(token(33)),
        Position::write(token(33), Some(WriteSeq::FIRST)),
        Position::write(token(33), WriteSeq::FIRST.next()),
        Position::write(token(33), last),
        Position::write(token(33), None),
        Position::claim(token(34)),
    ];
    assert!(ascending.is_sorted_by(|a, b| a < b), "{ascending:?}");
    assert_eq!((WriteSeq::new(0), WriteSeq::new(u64::MAX), last.unwrap().next()), (None, None, None));
}

#[test]
fn the_first_request_of_a_key_always_passes() {
    assert_eq!(judge(None, Position::claim(token(1)), None), Ok(()));
}

proptest! {
    #[test]
    fn a_guard_converts_to_two_numbers_and_back(token: u64, number: u64) {
        if let Some(guard) = Guard::from_parts(token, number) {
            prop_assert_eq!(guard.to_parts(), (token, number));
        } else {
            prop_assert!(token > 0 && number == 0, "only a claim is no write");
        }
    }
}
