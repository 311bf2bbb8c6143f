//! Waiters for a lock on Redis are woken by the publication of its release, and are served even if the
//! publication is lost.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::lab::{Lab, Member, ROUND_TRIP, in_lab, key};
use dlock::Runtime;
use dlock::redis::Waiting;
use sim::faults::Reset;

/// Longer than any test, so that no lease expires.
const TTL: Duration = Duration::from_secs(600);
/// The longest time from a release's answer to the grant of the waiter: the publication is sent before that
/// answer, and one request follows.
const AT_ONCE: Duration = ROUND_TRIP.saturating_add(Duration::from_millis(1));
/// The time for which the holders hold the lock. By then a waiter polls only every one or two seconds.
const HELD: Duration = Duration::from_secs(20);

fn in_waking_lab<T: Send, F: Future<Output = T>>(clients: usize, test: impl FnOnce(Lab) -> F + Send) -> T {
    in_lab(clients, |mut lab| {
        lab.waiting = Waiting::Called;
        test(lab)
    })
}

/// Acquires and releases in a task of `member`, with a timeout of ten times [`HELD`]; sends the time of the
/// grant by the client's clock.
fn wait_for_lock(member: &Member) -> tokio::sync::oneshot::Receiver<dlock::Instant> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let (lock, runtime) = (member.lock.clone(), member.runtime.clone());
    member.runtime.spawn(async move {
        let handle = lock.acquire(&key(), runtime.now() + 10 * HELD).await.unwrap();
        let _ = sender.send(runtime.now());
        handle.release().await.unwrap();
    });
    receiver
}

/// Publishes on the lock's channel; returns the number of subscribers.
async fn subscribers(lab: &Lab) -> u64 {
    lab.ask(redis::cmd("PUBLISH").arg(key().freed_channel()).arg("")).await
}

#[test]
fn a_release_wakes_the_waiter() {
    in_waking_lab(2, |lab| async move {
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
fn each_release_wakes_the_next_waiter_of_a_client() {
    in_waking_lab(2, |lab| async move {
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
        for (place, served) in (1..).zip(served) {
            // Each takes a wake-up, a request, and a release that wakes the next.
            assert!(served <= 3 * ROUND_TRIP * place, "{place}: {served:?}");
        }
        assert_eq!(lab.counter().await, Some(6));
    });
}

#[test]
fn a_waiter_polls_when_its_wake_up_is_lost() {
    in_waking_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        let served = wait_for_lock(&b);
        lab.sleep(HELD).await;
        assert_eq!(subscribers(&lab).await, 1);
        // The connection for the wake-up is gone, and the next one is not open yet.
        lab.control.strike(Reset::between(b.name(), "redis"));
        held.release().await.unwrap();
        let released = b.now();
        let served = served.await.unwrap().saturating_since(released);
        assert!(served <= Duration::from_secs(3), "{served:?}");
        assert_eq!(lab.counter().await, Some(2));
    });
}

#[test]
fn a_waiter_subscribes_again_after_a_reset() {
    in_waking_lab(2, |lab| async move {
        let (a, b) = lab.pair(TTL);
        let held = a.lock.try_acquire(&key()).await.unwrap();
        let served = wait_for_lock(&b);
        lab.sleep(HELD).await;
        lab.control.strike(Reset::between(b.name(), "redis"));
        lab.sleep(HELD).await;
        assert_eq!(subscribers(&lab).await, 1);
        held.release().await.unwrap();
        let released = b.now();
        assert!(served.await.unwrap().saturating_since(released) <= AT_ONCE);
    });
}

#[test]
fn a_dropped_waiter_leaves_no_subscription_and_no_connection() {
    in_waking_lab(2, |lab| async move {
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
            assert_eq!(subscribers(&lab).await, 1);
        }
        lab.sleep(2 * ROUND_TRIP).await;
        assert_eq!(subscribers(&lab).await, 0);
        // Three connections are left: the holder's, the client's own and that of the INFO request. The one
        // for wake-ups is closed.
        lab.sleep(HELD).await;
        let clients: redis::InfoDict = lab.ask(redis::cmd("INFO").arg("clients")).await;
        let open: u64 = clients.get("connected_clients").unwrap();
        held.release().await.unwrap();
        assert_eq!(lab.counter().await, Some(1));
        assert_eq!(open, 3);
    });
}

#[test]
fn a_waiter_for_an_expiring_lease_is_served_in_time() {
    in_waking_lab(2, |lab| async move {
        let (a, b) = lab.pair(Duration::from_secs(5));
        a.lock.try_acquire(&key()).await.unwrap().leave();
        let begun = b.now();
        let served = wait_for_lock(&b).await.unwrap().saturating_since(begun);
        assert!((4900..5300).contains(&served.as_millis()), "{served:?}");
    });
}
