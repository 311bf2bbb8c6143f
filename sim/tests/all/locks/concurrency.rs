//! Many acquirers of one lock at once: one holder at a time, all served, tokens in the order of the grants.
//!
//! The list is that of `distributed-coordination-part-018`, section 31, "Concurrency Tests".

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{Member, in_lab, key};
use dlock::Runtime;

const ACQUIRERS: usize = 100;

/// What the acquirers saw.
#[derive(Default)]
struct Seen {
    /// The tokens, in the order in which the grants were used.
    tokens: Vec<u64>,
    refused: usize,
    inside: usize,
    inside_max: usize,
}

type Shared = Arc<Mutex<Seen>>;

/// Each of 100 asks once, and keeps what it gets.
fn ask_once(member: &Arc<Member>, seen: &Shared) {
    let (member, seen) = (Arc::clone(member), Arc::clone(seen));
    member.process.clone().spawn(async move {
        match member.lock.try_acquire(&key()).await {
            Ok(handle) => {
                seen.lock().unwrap().tokens.push(handle.fence().as_u64());
                handle.leave();
            }
            Err(_) => seen.lock().unwrap().refused += 1,
        }
    });
}

#[test]
fn of_100_processes_at_once_one_acquires_until_its_ttl_is_over() {
    in_lab(ACQUIRERS, |lab| async move {
        let (ttl, seen) = (Duration::from_secs(30), Shared::default());
        for number in 0..ACQUIRERS {
            ask_once(&Arc::new(lab.member(number, ttl)), &seen);
        }
        lab.sleep(Duration::from_secs(10)).await;
        let seen = seen.lock().unwrap();
        assert_eq!((seen.tokens.as_slice(), seen.refused), ([1].as_slice(), ACQUIRERS - 1));
    });
}

#[test]
fn of_100_tasks_on_one_connection_one_acquires_until_its_ttl_is_over() {
    in_lab(1, |lab| async move {
        let (ttl, seen) = (Duration::from_secs(30), Shared::default());
        let member = Arc::new(lab.member(0, ttl));
        for _ in 0..ACQUIRERS {
            ask_once(&member, &seen);
        }
        lab.sleep(Duration::from_secs(10)).await;
        let seen = seen.lock().unwrap();
        assert_eq!((seen.tokens.as_slice(), seen.refused), ([1].as_slice(), ACQUIRERS - 1));
    });
}

/// Waits for the lock, holds it for 20 ms and releases it.
async fn wait_and_hold(member: Member, seen: Shared) {
    let handle = member.lock.acquire(&key(), member.within(Duration::from_secs(600))).await.unwrap();
    {
        let mut seen = seen.lock().unwrap();
        seen.tokens.push(handle.fence().as_u64());
        seen.inside += 1;
        seen.inside_max = seen.inside_max.max(seen.inside);
    }
    member.runtime.sleep_until(member.within(Duration::from_millis(20))).await;
    seen.lock().unwrap().inside -= 1;
    handle.release().await.unwrap();
}

#[test]
fn all_of_100_that_wait_are_served_one_after_the_other() {
    in_lab(ACQUIRERS, |lab| async move {
        let seen = Shared::default();
        for number in 0..ACQUIRERS {
            let member = lab.member(number, Duration::from_secs(5));
            member.process.clone().spawn(wait_and_hold(member, Arc::clone(&seen)));
        }
        lab.sleep(Duration::from_secs(600)).await;
        let seen = seen.lock().unwrap();
        assert_eq!(seen.tokens, (1..=100).collect::<Vec<_>>());
        assert_eq!((seen.inside, seen.inside_max), (0, 1));
    });
}
