//! Those who wait for a lock on Redis are called when it is given up, and served all the same when the call
//! gets lost.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::lab::{Lab, Member, ROUND_TRIP, in_lab, key};
use dlock::Runtime;
use dlock::redis::Waiting;
use sim::faults::Reset;

/// Long enough that no lease runs out.
const TTL: Duration = Duration::from_secs(600);
/// The call was on its way before the holder had its answer; then there is one question.
const AT_ONCE: Duration = ROUND_TRIP.saturating_add(Duration::from_millis(1));
/// How long the holders hold the lock: by then a waiter asks every one or two seconds only.
const HELD: Duration = Duration::from_secs(20);

fn in_called_lab<T: Send, F: Future<Output = T>>(clients: usize, test: impl FnOnce(Lab) -> F + Send) -> T {
    in_lab(clients, |mut lab| {
        lab.waiting = Waiting::Called;
        test(lab)
    })
}

/// Has `member` acquire in the background after [`HELD`] of waiting; tells when it was served, in its own
/// time, and releases.
fn wait_for_lock(member: &Member) -> tokio::sync::oneshot::Receiver<dlock::Instant> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let (lock, runtime) = (member.lock.clone(), member.runtime.clone());
    member.runtime.spawn(async move {
        let handle = lock.acquire(&key(), runtime.now() + 10 * HELD).await.unwrap();
        let _ = tell.send(runtime.now());
        handle.release().await.unwrap();
    });
    told
}

/// How many hear what is published about the lock.
async fn listeners(lab: &Lab) -> u64 {
    lab.ask(redis::cmd("PUBLISH").arg(key().freed_channel()).arg("")).await
}

#[test]
fn a_release_calls_the_waiter() {
    in_called_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        let served = wait_for_lock(&b);
        lab.sleep(HELD).await;
        held.release().await.unwrap();
        let (released, served) = (b.now(), served.await.unwrap());
        assert!(served.saturating_since(released) <= AT_ONCE, "{released:?} {served:?}");
    });
}

#[test]
fn one_call_serves_one_waiter_of_a_client_after_the_other() {
    in_called_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        let waiting: Vec<_> = (0..5).map(|_| wait_for_lock(&b)).collect();
        lab.sleep(HELD).await;
        held.release().await.unwrap();
        let released = b.now();
        let mut served = Vec::new();
        for waiting in waiting {
            served.push(waiting.await.unwrap().saturating_since(released));
        }
        served.sort_unstable();
        for (turn, served) in (1..).zip(served) {
            // Each takes a call, a question, and a release that calls the next.
            assert!(served <= 3 * ROUND_TRIP * turn, "{turn}: {served:?}");
        }
        assert_eq!(lab.counter().await, Some(6));
    });
}

#[test]
fn a_lost_call_is_made_good_by_the_waiters_own_questions() {
    in_called_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        let served = wait_for_lock(&b);
        lab.sleep(HELD).await;
        assert_eq!(listeners(&lab).await, 1);
        // The connection that would bring the call is gone, and the next one not there yet.
        lab.control.strike(Reset::between(b.name(), "redis"));
        held.release().await.unwrap();
        let served = served.await.unwrap().saturating_since(b.now());
        assert!(served <= Duration::from_secs(3), "{served:?}");
        assert_eq!(lab.counter().await, Some(2));
    });
}

#[test]
fn after_a_lost_connection_it_listens_again() {
    in_called_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        let served = wait_for_lock(&b);
        lab.sleep(HELD).await;
        lab.control.strike(Reset::between(b.name(), "redis"));
        lab.sleep(HELD).await;
        assert_eq!(listeners(&lab).await, 1);
        held.release().await.unwrap();
        let released = b.now();
        assert!(served.await.unwrap().saturating_since(released) <= AT_ONCE);
    });
}

#[test]
fn who_is_dropped_while_waiting_leaves_nothing_behind() {
    in_called_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        {
            let key = key();
            let mut acquire = pin!(b.lock.acquire(&key, b.within(10 * HELD)));
            let mut over = pin!(b.runtime.sleep_until(b.within(HELD)));
            std::future::poll_fn(|cx| {
                assert!(acquire.as_mut().poll(cx).is_pending());
                over.as_mut().poll(cx)
            })
            .await;
            assert_eq!(listeners(&lab).await, 1);
        }
        lab.sleep(2 * ROUND_TRIP).await;
        assert_eq!(listeners(&lab).await, 0);
        // Nor does the client keep a connection for it: the holder's, its own and the one that asks are left.
        lab.sleep(HELD).await;
        let clients: redis::InfoDict = lab.ask(redis::cmd("INFO").arg("clients")).await;
        let open: u64 = clients.get("connected_clients").unwrap();
        held.release().await.unwrap();
        assert_eq!(lab.counter().await, Some(1));
        assert_eq!(open, 3);
    });
}

#[test]
fn a_lease_that_expires_calls_nobody_and_its_waiter_comes_in_time() {
    in_called_lab(2, |lab| async move {
        let (a, b) = lab.pair(Duration::from_secs(5));
        a.lock.try_acquire(&key()).await.unwrap().leave();
        let begun = b.now();
        let served = wait_for_lock(&b).await.unwrap().saturating_since(begun);
        assert!((4900..5300).contains(&served.as_millis()), "{served:?}");
    });
}
