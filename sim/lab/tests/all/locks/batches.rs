//! Many tasks of one process acquire at the same time, over one connection and in shared calls. Each gets the
//! answer that it would get alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{Lab, Member, ROUND_TRIP, in_lab};
use dlock::redis::Redis;
use dlock::{Handle, LockKey, TryAcquireError, timeout_at};
use sim::world::runtime::SimRuntime;

const CROWD: usize = 200;
const TTL: Duration = Duration::from_secs(30);

/// The result of an acquire; `None` if its caller dropped it.
type Answer = Option<Result<Handle<Redis<SimRuntime>>, TryAcquireError>>;

fn numbered(number: usize) -> LockKey {
    LockKey::new("crowd", &number.to_string()).unwrap()
}

/// Runs [`CROWD`] acquires at once, each for its own key and with its own timeout; returns the answers after
/// two seconds.
async fn crowd(
    lab: &Lab,
    member: &Arc<Member>,
    timeout: fn(usize) -> Option<Duration>,
) -> BTreeMap<usize, Answer> {
    let answers = Arc::new(Mutex::new(BTreeMap::new()));
    for number in 0..CROWD {
        let (member, answers) = (Arc::clone(member), Arc::clone(&answers));
        let process = member.process.clone();
        process.spawn(async move {
            let key = numbered(number);
            let acquire = member.lock.try_acquire(&key);
            let answer = match timeout(number) {
                Some(timeout) => timeout_at(&member.runtime, member.within(timeout), acquire).await.ok(),
                None => Some(acquire.await),
            };
            answers.lock().unwrap().insert(number, answer);
        });
    }
    lab.sleep(Duration::from_secs(2)).await;
    std::mem::take(&mut *answers.lock().unwrap())
}

/// Returns the owner token that the server stores for each of the crowd's keys.
async fn owners(lab: &Lab) -> Vec<Option<String>> {
    let mut command = redis::cmd("MGET");
    (0..CROWD).for_each(|number| _ = command.arg(numbered(number).owner_key()));
    lab.ask(&command).await
}

/// Returns the first client with an open connection.
async fn opened(lab: &Lab) -> Arc<Member> {
    let member = Arc::new(lab.member(0, TTL));
    member.lock.try_acquire(&super::lab::key()).await.unwrap().release().await.unwrap();
    member
}

#[test]
fn a_crowd_acquires_its_leases_in_few_shared_calls() {
    in_lab(1, |lab| async move {
        let member = opened(&lab).await;
        let before = lab.executed();
        let answers = crowd(&lab, &member, |_| None).await;
        // The server also counts the commands of scripts: SET and INCR for each grant.
        let calls = lab.executed() - before - 2 * CROWD as u64;
        let owners = owners(&lab).await;
        for (number, answer) in answers {
            let handle = answer.unwrap().unwrap();
            assert_eq!(handle.fence().as_u64(), 1);
            assert_eq!(owners[number].as_deref(), Some(handle.owner().as_str()));
            handle.leave();
        }
        assert!((17..50).contains(&calls), "{calls}");
    });
}

#[test]
fn a_broken_counter_fails_only_its_own_lock() {
    in_lab(1, |lab| async move {
        let member = opened(&lab).await;
        let () = lab.ask(redis::cmd("SET").arg(numbered(77).fence_key()).arg("many")).await;
        let mut failed = Vec::new();
        for (number, answer) in crowd(&lab, &member, |_| None).await {
            match answer.unwrap() {
                Ok(handle) => handle.leave(),
                Err(error) => failed.push((number, error.to_string())),
            }
        }
        let [(77, error)] = &failed[..] else { panic!("{failed:?}") };
        assert!(error.contains("not an integer"), "{error}");
    });
}

#[test]
fn a_dropped_acquire_holds_nothing_and_others_are_unaffected() {
    in_lab(1, |lab| async move {
        let member = opened(&lab).await;
        // Every second acquire is dropped: some at once, some while the call is sent, executed or answered.
        let answers = crowd(&lab, &member, |number| {
            let step = ROUND_TRIP * u32::try_from(number).unwrap() / 150;
            number.is_multiple_of(2).then_some(step)
        })
        .await;
        let owners = owners(&lab).await;
        let dropped = answers.values().filter(|answer| answer.is_none()).count();
        assert!((20..100).contains(&dropped), "{dropped}");
        for (number, answer) in answers {
            let handle = answer.map(Result::unwrap);
            assert_eq!(owners[number].as_deref(), handle.as_ref().map(|handle| handle.owner().as_str()));
            handle.into_iter().for_each(Handle::leave);
        }
    });
}
