//! Redlock on simulated servers: grants with failing nodes, and the keys that remain afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::{LATENCY, Lab, in_lab, key, node};
use crate::support::scripts::drop_when_pending;
use dlock::{
    AcquireError, BackendError, Cap, FencingToken, Released, RenewError, TryAcquireError, timeout_at,
};
use sim::faults::{Cut, Pause};

const TTL: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(150);
/// Long enough that no lease expires during a test.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_lock_is_acquired_renewed_and_released_on_five_nodes() {
    in_lab(5, 2, |lab| async move {
        let (a, b) = (lab.member(0, TTL), lab.member(1, TTL));
        let began = a.now();
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(handle.fence().as_u64(), 1);
        assert_eq!(
            handle.valid_until(),
            began + TTL - Duration::from_millis(22),
            "counted from before the first request"
        );
        lab.sleep(GRACE).await;
        let owner = Some(handle.owner().as_str().to_owned());
        assert_eq!(lab.owners().await, vec![owner; 5]);
        let error = b.lock.try_acquire(&key()).await.unwrap_err();
        let TryAcquireError::Taken { retry_after: Some(left) } = error else { panic!("{error}") };
        assert!(left > TTL - GRACE * 2 && left < TTL - GRACE, "{left:?}");
        lab.sleep(TTL / 2).await;
        let renewed = a.now();
        handle.renew().await.unwrap();
        assert_eq!(handle.valid_until(), renewed + TTL - Duration::from_millis(22));
        lab.sleep(TTL * 3 / 4).await;
        assert_eq!(lab.held().await, 5);
        assert_eq!(handle.release().await, Ok(Released::Done));
        lab.sleep(GRACE).await;
        assert_eq!(lab.held().await, 0);
        let next = b.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(next.fence().as_u64(), 2);
        next.leave();
    });
}

#[test]
fn a_crashed_or_unreachable_minority_does_not_matter() {
    in_lab(5, 1, |lab| async move {
        let a = lab.member(0, TTL);
        lab.crash(0);
        lab.cut(&a, 3);
        for round in 1..4 {
            let began = a.now();
            let handle = a.lock.try_acquire(&key()).await.unwrap();
            assert_eq!(handle.fence().as_u64(), round);
            assert!(a.now().saturating_since(began) < LATENCY * 16, "the silent node delays no call");
            handle.renew().await.unwrap();
            assert_eq!(handle.release().await, Ok(Released::Done));
        }
    });
}

#[test]
fn without_a_majority_an_acquire_fails_and_leaves_no_key() {
    in_lab(5, 2, |lab| async move {
        let (a, b) = (lab.member(0, LONG), lab.member(1, LONG));
        (0..3).for_each(|node| lab.cut(&a, node));
        let deadline = a.within(Duration::from_secs(2));
        let error = a.lock.acquire(&key(), deadline).await.unwrap_err();
        assert!(a.now() <= deadline + Duration::from_millis(1), "the tick of the world's clock is 1 ms");
        let AcquireError::Unavailable(BackendError::NoQuorum { answered, nodes, needed, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!((answered, nodes, needed), (2, 5, 3));
        lab.sleep(GRACE).await;
        assert_eq!(lab.held().await, 0);
        b.lock.try_acquire(&key()).await.unwrap().leave();
    });
}

#[test]
fn a_partition_in_one_direction_can_cost_the_majority() {
    for from_client in [true, false] {
        in_lab(5, 1, |lab| async move {
            let a = lab.member(0, LONG);
            let cut = |number| match from_client {
                true => Cut::one_way(a.name(), &node(number)),
                false => Cut::one_way(&node(number), a.name()),
            };
            (0..3).for_each(|number| _ = lab.control.strike(cut(number)));
            let error = a.lock.try_acquire(&key()).await.unwrap_err();
            assert!(matches!(error, TryAcquireError::Backend(BackendError::NoQuorum { .. })), "{error}");
            (0..3).for_each(|number| lab.control.heal(cut(number)));
            lab.sleep(Duration::from_secs(5)).await;
            assert_eq!(lab.held().await, 0);
        });
    }
}

#[test]
fn the_release_reaches_nodes_whose_votes_were_lost() {
    in_lab(5, 1, |lab| async move {
        let a = lab.member(0, LONG);
        a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
        lab.sleep(GRACE).await;
        // The requests arrive, the answers do not.
        (3..5).for_each(|number| _ = lab.control.strike(Cut::one_way(&node(number), a.name())));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(GRACE).await;
        assert_eq!(handle.release().await, Ok(Released::Done));
        // Until the requests for votes time out: the releases queue behind them, and need no answers.
        lab.sleep(Duration::from_secs(1)).await;
        assert_eq!(lab.held().await, 0);
    });
}

#[test]
fn a_vote_that_arrives_after_the_release_is_removed() {
    in_lab(5, 1, |lab| async move {
        let a = lab.member(0, LONG);
        a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
        lab.sleep(GRACE).await;
        let cut = |number| Cut::one_way(a.name(), &node(number));
        (3..5).for_each(|number| _ = lab.control.strike(cut(number)));
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        assert_eq!(handle.release().await, Ok(Released::Done));
        lab.sleep(Duration::from_secs(3)).await;
        (3..5).for_each(|number| lab.control.heal(cut(number)));
        lab.sleep(Duration::from_secs(5)).await;
        assert_eq!(lab.held().await, 0);
    });
}

#[test]
fn a_slow_node_and_an_empty_one_keep_the_lock() {
    in_lab(5, 1, |lab| async move {
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(GRACE).await;
        lab.delay(&node(1), a.name(), Duration::from_secs(1));
        lab.server(2).flush();
        let work = lab.sleep(TTL * 4);
        handle.while_held(Cap(LONG), work).await.unwrap();
        assert!(handle.is_valid());
        lab.crash(3);
        lab.sleep(TTL / 4).await;
        let error = handle.renew().await.unwrap_err();
        assert!(matches!(error, RenewError::Backend(BackendError::NoQuorum { .. })), "{error}");
        assert!(handle.is_valid(), "the renewal may be retried while the lease is valid");
        handle.leave();
    });
}

#[test]
fn a_majority_that_lost_the_lease_ends_it_at_once() {
    in_lab(5, 1, |lab| async move {
        let a = lab.member(0, TTL);
        let handle = a.lock.try_acquire(&key()).await.unwrap();
        lab.sleep(GRACE).await;
        (0..3).for_each(|node| lab.server(node).flush());
        assert!(matches!(handle.renew().await, Err(RenewError::Lost(_))));
        assert!(!handle.is_valid());
        assert_eq!(handle.release().await, Ok(Released::NotOwner));
    });
}

#[test]
fn replies_that_arrive_after_the_lease_are_no_grant() {
    in_lab(5, 2, |lab| async move {
        let (a, b) = (lab.member(0, TTL), lab.member(1, TTL));
        a.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
        lab.sleep(GRACE).await;
        let pause = Pause::of(a.name());
        let paused = pause.clone();
        // The votes are given, and their answers are in flight.
        lab.control.after(LATENCY * 3 / 2, move |control| _ = control.strike(paused));
        let late = Arc::new(Mutex::new(None));
        let found = Arc::clone(&late);
        a.process.clone().spawn(async move {
            let answer = a.lock.try_acquire(&key()).await.map(|_| ());
            *found.lock().unwrap() = Some(answer);
        });
        lab.sleep(TTL + GRACE).await;
        let holder = b.lock.try_acquire(&key()).await.unwrap();
        lab.control.heal(pause);
        lab.sleep(GRACE).await;
        assert!(late.lock().unwrap().take().unwrap().is_err());
        assert_eq!(lab.owners().await, vec![Some(holder.owner().as_str().to_owned()); 5]);
        holder.leave();
    });
}

/// Lets `clients` clients acquire and release once each, after `delay` has slowed links down. Returns the
/// list of their fencing tokens, which grows with each grant.
fn contend(lab: &Lab, clients: usize, delay: impl Fn(&Lab)) -> Arc<Mutex<Vec<FencingToken>>> {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let members: Vec<_> = (0..clients).map(|number| lab.member(number, LONG)).collect();
    delay(lab);
    for member in members {
        let tokens = Arc::clone(&tokens);
        member.process.clone().spawn(async move {
            let deadline = member.within(Duration::from_secs(20));
            let handle = member.lock.acquire(&key(), deadline).await.unwrap();
            tokens.lock().unwrap().push(handle.fence());
            handle.release().await.unwrap();
        });
    }
    tokens
}

#[test]
fn after_a_split_vote_all_clients_are_served_soon() {
    in_lab(5, 3, |lab| async move {
        // Each client is far from all nodes except its own, which are two, two and one.
        let tokens = contend(&lab, 3, |lab| {
            for client in 0..3 {
                for far in (0..5).filter(|number| number / 2 != client) {
                    lab.delay(&format!("client-{client}"), &node(far), Duration::from_millis(5));
                }
            }
        });
        // Each client has the votes of its near nodes, and no other vote yet.
        lab.sleep(Duration::from_millis(8)).await;
        let owners = lab.owners().await;
        let of = |client: usize| {
            owners.iter().flatten().filter(|owner| owner.starts_with(&format!("client-{client}:"))).count()
        };
        assert_eq!([of(0), of(1), of(2)], [2, 2, 1], "{owners:?}");
        lab.sleep(Duration::from_secs(5)).await;
        let tokens = tokens.lock().unwrap();
        assert_eq!(tokens.len(), 3, "long before a lease of {LONG:?} would have expired");
        assert!(tokens.is_sorted(), "{tokens:?}");
    });
}

#[test]
fn a_dropped_acquire_leaves_no_key_at_any_await_point() {
    for millis in [0, 1, 3, 7] {
        let dropped = (1..).take_while(|nth| {
            in_lab(5, 1, |lab| async move {
                let a = lab.member(0, LONG);
                // Each node at a different distance, so that the answers arrive one by one.
                for number in 1..5 {
                    let far = Duration::from_micros(700 * number as u64);
                    lab.delay(a.name(), &node(number), far);
                }
                let time = Duration::from_millis(millis);
                let acquired = drop_when_pending(&lab.control, *nth, time, a.lock.try_acquire(&key())).await;
                let ended = acquired.is_some();
                drop(acquired);
                lab.sleep(Duration::from_millis(500)).await;
                assert_eq!(lab.held().await, 0, "pending for the {nth}th time, dropped after {time:?}");
                !ended
            })
        });
        let dropped = dropped.count();
        assert!(dropped >= 8, "it awaits connections, three votes and three raised counters: {dropped}");
    }
}

#[test]
fn a_dropped_acquire_leaves_no_key_at_any_time() {
    let mut dropped = 0;
    for halves in 0.. {
        let ended = in_lab(3, 1, |lab| async move {
            let a = lab.member(0, LONG);
            lab.cut(&a, 2);
            let cut = Cut::between(a.name(), &node(2));
            lab.control.after(Duration::from_millis(40), |control| control.heal(cut));
            let deadline = a.within(Duration::from_micros(500 * halves));
            let acquired = timeout_at(&a.runtime, deadline, a.lock.try_acquire(&key())).await;
            let ended = acquired.is_ok();
            drop(acquired);
            lab.sleep(Duration::from_secs(3)).await;
            assert_eq!(lab.held().await, 0, "dropped after {halves} half milliseconds");
            ended
        });
        if ended {
            break;
        }
        dropped += 1;
    }
    assert!(dropped > 20, "it takes two round trips and a connection: {dropped}");
}

#[test]
fn the_slowest_node_gets_the_scripts_too() {
    in_lab(3, 1, |lab| async move {
        let a = lab.member(0, LONG);
        lab.delay(a.name(), &node(2), Duration::from_millis(15));
        for _ in 0..2 {
            let handle = a.lock.try_acquire(&key()).await.unwrap();
            lab.sleep(GRACE).await;
            assert_eq!(lab.held().await, 3);
            handle.release().await.unwrap();
            lab.sleep(GRACE).await;
            assert_eq!(lab.held().await, 0);
        }
        lab.crash(0);
        a.lock.try_acquire(&key()).await.unwrap().leave();
    });
}
