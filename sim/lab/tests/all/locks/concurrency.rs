//! Many clients acquire one lock at once: one holder at a time, all are served, tokens follow the grants.
//!
//! The list of tests is from `distributed-coordination-part-018`, section 31, "Concurrency Tests".

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{Member, in_lab, key};
use dlock::Runtime;

const ACQUIRERS: usize = 100;

/// The observations of the acquirers.
#[derive(Default)]
struct Seen {
    /// The tokens, in the order in which the grants were used.
    tokens: Vec<u64>,
    refused: usize,
    /// Holders at present, and the most at once.
    inside: usize,
    inside_max: usize,
}

type Shared = Arc<Mutex<Seen>>;

/// Tries to acquire once in a task of `member`, and never releases the lease.
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
fn one_of_100_concurrent_processes_acquires() {
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
fn one_of_100_concurrent_tasks_on_one_connection_acquires() {
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
fn all_100_waiters_are_served_one_after_the_other() {
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
