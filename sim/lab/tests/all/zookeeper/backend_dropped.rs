//! Dropped acquires on simulated ZooKeeper servers: they leave no entry in the queue.

use std::time::Duration;

use super::lab::{key, member, with_entries};
use crate::support::scripts::drop_when_pending;

/// Drops an acquire after `halves` half milliseconds. If `is_held`, another client holds the lock. Returns
/// true if the acquire ended before.
fn acquire_dropped_after(halves: u64, is_held: bool) -> bool {
    with_entries(|zoo, entries| async move {
        let (a, b) = zoo.members();
        let holder = if is_held { Some(b.try_acquire().await) } else { None };
        let deadline = a.now() + Duration::from_micros(500 * halves);
        let key = key();
        let acquire = a.lock.acquire(&key, a.within(Duration::from_millis(60_000)));
        let acquired = dlock::timeout_at(&a.runtime, deadline, acquire).await;
        let ended = acquired.is_ok();
        drop(acquired);
        zoo.pass(300).await;
        let left: Vec<u64> = holder.iter().map(|holder| holder.fence().as_u64()).collect();
        assert_eq!(entries.zxids(), left, "dropped after {halves} half milliseconds");
        assert_eq!(entries.expired(), 0);
        ended
    })
}

#[test]
fn a_dropped_acquire_leaves_no_entry_at_any_time() {
    let dropped = (0..).take_while(|halves| !acquire_dropped_after(*halves, false)).count();
    assert!(dropped > 12, "it connects, creates the queue and enters it: {dropped}");
}

#[test]
fn a_dropped_waiter_leaves_no_entry_at_any_time() {
    // From before the connection until long after it began to watch the holder.
    assert!((0..40).all(|halves| !acquire_dropped_after(halves, true)));
}

/// Drops an acquire `millis` ms after its `nth` await point. Returns true if the acquire ended before.
fn acquire_dropped_at(nth: usize, millis: u64) -> bool {
    with_entries(|zoo, entries| async move {
        let a = member(&zoo.process("a"));
        let key = key();
        let time = Duration::from_millis(millis);
        let acquired = drop_when_pending(&zoo.control, nth, time, a.lock.try_acquire(&key)).await;
        let ended = acquired.is_some();
        drop(acquired);
        zoo.pass(300).await;
        assert_eq!(
            (entries.len(), entries.expired()),
            (0, 0),
            "pending for the {nth}th time, after {millis} ms"
        );
        ended
    })
}

#[test]
fn a_dropped_acquire_leaves_no_entry_at_any_await_point() {
    for millis in 0..5 {
        let dropped = (1..).take_while(|nth| !acquire_dropped_at(*nth, millis)).count();
        assert!(dropped >= 4, "connection, creation, queue, creation: {dropped}");
    }
}
