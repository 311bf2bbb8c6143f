//! Tests of the resources with a mistake against requests of a semaphore's permits: each still makes its
//! mistake, and judges as the correct one does otherwise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::Runtime;
use futures_util::future::join_all;
use resource::client::{Client, PutAnswer};
use resource::fence::{Beside, Guard};
use resource::http::Config;
use resource::store::Write;
use resource::{OwnerToken, ResourceKey};
use sim::world::runtime::SimRuntime;
use sim::{Sim, Span};

use super::accepts_equal::AcceptsEqual;
use super::check_then_write::CheckThenWrite;
use super::checked_in_application::CheckedInApplication;
use super::string_tokens::StringTokens;
use super::token_in_memory::TokenInMemory;
use crate::kit::{Faultless, ResourceMistake, resource_with};
use crate::{Options, System};

/// A write: its token, its owner, and the permits beside it.
type Asked = (&'static str, &'static str, &'static str);

/// Sends one write. Returns the version that it made; `None` if it was refused.
async fn put(client: &Client<SimRuntime>, runtime: &SimRuntime, asked: Asked) -> Option<u64> {
    let (token, owner, beside) = asked;
    let (key, beside) = (ResourceKey::new("k").unwrap(), beside.parse::<Beside>().unwrap());
    let owner = Some(OwnerToken::new(owner).unwrap());
    let write = Write { guard: Guard::token(token.parse().unwrap()), owner, body: token.into() };
    let deadline = runtime.now() + Duration::from_secs(5);
    match client.beside(&beside).put(&key, &write, deadline).await.unwrap() {
        PutAnswer::Accepted { version } => Some(version),
        PutAnswer::Refused(_) => None,
    }
}

/// Returns the answers of a resource with the mistake `M` to `asked`, which are sent together or one by one.
fn answers<M: ResourceMistake>(seed: u64, together: bool, asked: &'static [Asked]) -> Vec<Option<u64>> {
    let options = Options::new(System::REDIS, Span(Duration::from_secs(1)), Vec::new());
    let answers = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&answers);
    Sim::new(seed)
        .resource("resource", resource_with::<M>(&options, Config::default()))
        .process("a", move |process| {
            let (runtime, found) = (process.runtime(), Arc::clone(&found));
            async move {
                let client = Client::new(runtime.clone(), "resource:80");
                if together {
                    let all = join_all(asked.iter().map(|asked| put(&client, &runtime, *asked))).await;
                    found.lock().unwrap().extend(all);
                    return;
                }
                for asked in asked {
                    let answer = put(&client, &runtime, *asked).await;
                    found.lock().unwrap().push(answer);
                }
            }
        })
        .verdicts(&[])
        .run()
        .unwrap();
    let found = answers.lock().unwrap();
    found.clone()
}

/// 7 was live when 9 was granted, 8 was not.
const PERMITS: [Asked; 4] = [("9", "c:1", "7"), ("7", "a:1", ""), ("8", "b:1", ""), ("9", "d:1", "7")];

#[test]
fn the_correct_resource_accepts_live_permits_only() {
    assert_eq!(answers::<Faultless>(1, false, &PERMITS), [Some(1), Some(2), None, None]);
}

#[test]
fn an_equal_token_of_another_permit_is_accepted() {
    assert_eq!(answers::<AcceptsEqual>(1, false, &PERMITS), [Some(1), Some(2), None, Some(3)]);
}

#[test]
fn permits_are_compared_as_text() {
    const ASKED: [Asked; 2] = [("9", "a:1", ""), ("10", "b:1", "9")];
    assert_eq!(answers::<Faultless>(1, false, &ASKED), [Some(1), Some(2)]);
    assert_eq!(answers::<StringTokens>(1, false, &ASKED), [Some(1), None]);
    assert_eq!(answers::<StringTokens>(1, false, &PERMITS), [Some(1), Some(2), None, None]);
}

#[test]
fn an_instance_that_has_not_seen_the_newer_permit_accepts_an_ended_one() {
    assert_eq!(answers::<TokenInMemory>(1, false, &PERMITS), [Some(1), Some(2), Some(3), Some(4)]);
    const ALONE: [Asked; 3] = [("9", "c:1", "7"), ("7", "c:1", ""), ("8", "c:1", "")];
    assert_eq!(answers::<TokenInMemory>(1, false, &ALONE), [Some(1), Some(2), None]);
}

#[test]
fn a_store_without_a_check_accepts_an_ended_permit() {
    assert_eq!(answers::<CheckedInApplication>(1, false, &PERMITS), [Some(1), Some(2), Some(3), Some(4)]);
}

#[test]
fn an_ended_permit_passes_between_check_and_write() {
    const RACE: [Asked; 2] = [("9", "c:1", "7"), ("8", "b:1", "7")];
    let late = |answers: &[Option<u64>]| answers == [Some(1), Some(2)];
    assert!((0..16).any(|seed| late(&answers::<CheckThenWrite>(seed, true, &RACE))));
    assert!(!(0..16).any(|seed| late(&answers::<Faultless>(seed, true, &RACE))));
    assert_eq!(answers::<CheckThenWrite>(1, false, &PERMITS), [Some(1), Some(2), None, None]);
}
