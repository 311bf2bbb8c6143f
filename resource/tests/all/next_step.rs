//! The next step after an answer of the service, or after none.

use std::sync::Arc;
use std::time::Duration;

use crate::common::world::{Link, World, run};
use dlock::FencingToken;
use resource::ResourceKey;
use resource::client::{Client, ClientError, Failure, PutAnswer};
use resource::fence::{Guard, NextStep, Policy, Proof, Refusal};
use resource::http::{App, Config};
use resource::store::{MemoryStore, Write};

const PAID: Policy = Policy { has_outside_effects: true, may_begin_anew: true };

#[test]
fn only_an_unknown_write_is_sent_again_unchanged() {
    let wait = Duration::from_secs(3);
    let refused = ClientError::Refused { status: 400, error: String::new(), help: String::new() };
    for (error, next) in [
        (ClientError::Unknown(Failure::Timeout), NextStep::RepeatSameWrite),
        (ClientError::NotSent(Failure::Timeout), NextStep::Busy { retry_after: None }),
        (ClientError::NotSent(Failure::RateLimited(wait)), NextStep::Busy { retry_after: Some(wait) }),
        (refused, NextStep::Repair),
    ] {
        assert_eq!(error.next_step(), next, "{error:?}");
    }
    assert_eq!(PutAnswer::Accepted { version: 1 }.next_step(PAID), NextStep::Done);
}

/// Writes with tokens 33 and 34, and returns what the refusals of 33 prove: after a claim of 34, and after
/// its write.
async fn proofs(client: &Client<World>) -> [Proof; 2] {
    let (key, deadline) = (ResourceKey::new("seats:12A").unwrap(), World::at(9));
    let token = |number| FencingToken::new(number).unwrap();
    let put = |number| {
        let write = Write { guard: Guard::token(token(number)), owner: None, body: "by".into() };
        let key = key.clone();
        async move { client.put(&key, &write, deadline).await.unwrap() }
    };
    client.fenced_read(&key, token(34), None, deadline).await.unwrap();
    let stale = PutAnswer::Refused(Refusal::Stale { seen: token(34), got: token(33) });
    let mut proofs = Vec::new();
    for _ in 0..2 {
        let answer = put(33).await;
        assert_eq!((answer, answer.next_step(PAID)), (stale, NextStep::RetryWithNewLease));
        let PutAnswer::Refused(refusal) = answer else { unreachable!() };
        proofs.push(client.proof(&key, refusal, 0, deadline).await.unwrap());
        put(34).await;
    }
    proofs.try_into().unwrap()
}

#[test]
fn a_stale_write_is_superseded_once_the_later_holder_has_written() {
    let app = App::new(Arc::new(MemoryStore::new()), Config::default());
    run(&app, &[], async |world| {
        let client = Client::new(world.clone(), "resource:80");
        assert_eq!(proofs(&client).await, [Proof::Stale, Proof::Superseded]);
    });
}

#[test]
fn without_an_answer_to_the_read_nothing_is_proved() {
    let app = App::new(Arc::new(MemoryStore::new()), Config::default());
    run(&app, &[Link::Refused], async |world| {
        let client = Client::new(world.clone(), "resource:80");
        let key = ResourceKey::new("seats:12A").unwrap();
        let (seen, got) = ("34".parse().unwrap(), "33".parse().unwrap());
        let proof = client.proof(&key, Refusal::Stale { seen, got }, 0, World::at(9)).await;
        assert!(matches!(proof, Err(ClientError::NotSent(_))), "{proof:?}");
        // A conflict needs no read.
        let conflict = Refusal::Conflict { expected: 1, current: 2 };
        assert_eq!(client.proof(&key, conflict, 0, World::at(9)).await, Ok(Proof::Conflict));
    });
}
