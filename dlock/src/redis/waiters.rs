//! The wait queues of this client, one for each lock, and their wake-ups.
//!
//! The server's message that a lock was released wakes one waiter of each client: the first in the queue that
//! is not awake yet. A waiter that was woken requests the lock, and stays in the queue until it is granted
//! the lock or leaves. No wake-up is lost: if all waiters are awake already, the wake-up goes to the first
//! one whose request is refused, and a waiter that leaves while it is awake passes its wake-up on.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, MutexGuard};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::sync::Guarded;

/// The wait queues of all locks with waiters, each by the channel on which the server publishes releases.
#[derive(Default)]
pub(super) struct Waiters {
    state: Guarded<State>,
    /// Wakes the listener when [`State::touched`] has grown.
    changed: Notify,
}

#[derive(Default)]
struct State {
    queues: BTreeMap<Arc<str>, Queue>,
    /// Channels whose queue was created or removed since the listener last looked.
    touched: BTreeSet<Arc<str>>,
    /// Counts the tickets.
    tickets: u64,
}

/// The waiters for one lock. There is at least one.
#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// True if the client is subscribed to the channel.
    is_subscribed: bool,
    /// A wake-up came while all waiters were awake.
    has_spare_call: bool,
}

struct Waiter {
    ticket: u64,
    stage: Stage,
    bell: Arc<Notify>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// Woken, and has not sent its request yet.
    Called,
    /// Sending its request because it was woken.
    Asking,
}

/// A place in a queue. If it is dropped, the waiter leaves, and passes on its wake-up if it has one.
pub(super) struct Ticket {
    waiters: Arc<Waiters>,
    channel: Arc<str>,
    number: u64,
    bell: Arc<Notify>,
}

impl Waiters {
    /// Joins the queue of `channel` at its end.
    pub(super) fn join(self: &Arc<Self>, channel: &str) -> Ticket {
        let bell = Arc::new(Notify::new());
        let mut state = self.state();
        state.tickets += 1;
        let number = state.tickets;
        let channel =
            state.queues.get_key_value(channel).map_or_else(|| channel.into(), |(key, _)| Arc::clone(key));
        let queue = match state.queues.entry(Arc::clone(&channel)) {
            Entry::Occupied(queue) => queue.into_mut(),
            Entry::Vacant(queue) => {
                let queue = queue.insert(Queue::default());
                self.changed.notify_one();
                queue
            }
        };
        queue.waiters.push_back(Waiter { ticket: number, stage: Stage::Waiting, bell: Arc::clone(&bell) });
        if queue.waiters.len() == 1 {
            state.touched.insert(Arc::clone(&channel));
        }
        Ticket { waiters: Arc::clone(self), channel, number, bell }
    }

    /// Wakes the next waiter of `channel`: its lock was released.
    pub(super) fn call(&self, channel: &str) {
        if let Some(queue) = self.state().queues.get_mut(channel) {
            queue.call();
        }
    }

    /// Returns the channels whose queues were created, and those whose queues were removed, since the last
    /// call.
    pub(super) fn changes(&self) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut state = self.state();
        let touched = std::mem::take(&mut state.touched);
        touched.into_iter().partition(|channel| state.queues.contains_key(channel))
    }

    /// Completes when [`Waiters::changes`] has new channels, also if they came before the first poll.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Notes that the client is subscribed to `channels`. The first waiter of each is woken, since a release
    /// may have been published before.
    pub(super) fn subscribed(&self, channels: &[Arc<str>]) {
        let mut state = self.state();
        for channel in channels {
            if let Some(queue) = state.queues.get_mut(channel).filter(|queue| !queue.is_subscribed) {
                queue.is_subscribed = true;
                queue.call();
            }
        }
    }

    /// Notes that all subscriptions are lost.
    pub(super) fn unsubscribed(&self) {
        let mut state = self.state();
        let State { queues, touched, .. } = &mut *state;
        touched.clear();
        for (channel, queue) in queues {
            queue.is_subscribed = false;
            touched.insert(Arc::clone(channel));
        }
    }

    /// Returns whether there are no waiters.
    pub(super) fn is_empty(&self) -> bool {
        self.state().queues.is_empty()
    }

    fn leave(&self, ticket: &Ticket, passes_on: bool) {
        let mut state = self.state();
        let Some(queue) = state.queues.get_mut(&ticket.channel) else { return };
        let Some(place) = queue.place(ticket.number) else { return };
        let was_called = queue.waiters.remove(place).is_some_and(|waiter| waiter.stage != Stage::Waiting);
        if queue.waiters.is_empty() {
            state.queues.remove(&ticket.channel);
            state.touched.insert(Arc::clone(&ticket.channel));
            self.changed.notify_one();
        } else if was_called && passes_on {
            queue.call();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Queue {
    fn call(&mut self) {
        match self.waiters.iter_mut().find(|waiter| waiter.stage == Stage::Waiting) {
            Some(waiter) => {
                waiter.stage = Stage::Called;
                waiter.bell.notify_one();
            }
            None => self.has_spare_call = true,
        }
    }

    fn place(&self, ticket: u64) -> Option<usize> {
        self.waiters.iter().position(|waiter| waiter.ticket == ticket)
    }
}

impl Ticket {
    /// Waits to be woken. The waiter must request the lock then.
    pub(super) async fn called(&self) {
        self.bell.notified().await;
        self.change(|queue, place| queue.waiters[place].stage = Stage::Asking);
    }

    /// Notes that another owner has the lock: the waiter goes on waiting.
    pub(super) fn refused(&self) {
        self.change(|queue, place| {
            if queue.waiters[place].stage == Stage::Asking {
                queue.waiters[place].stage = Stage::Waiting;
            }
            if std::mem::take(&mut queue.has_spare_call) {
                queue.call();
            }
        });
    }

    /// Leaves because the lock was granted: no other waiter is woken.
    pub(super) fn served(self) {
        self.waiters.leave(&self, false);
    }

    fn change(&self, change: impl FnOnce(&mut Queue, usize)) {
        let mut state = self.waiters.state();
        if let Some(queue) = state.queues.get_mut(&self.channel)
            && let Some(place) = queue.place(self.number)
        {
            change(queue, place);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.waiters.leave(self, true);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const CHANNEL: &str = "lock:v1:{k}:freed";

    fn waiters() -> Arc<Waiters> {
        Arc::default()
    }

    /// Returns whether the waiter was woken.
    fn is_called(ticket: &Ticket) -> bool {
        ticket.called().now_or_never().is_some()
    }

    #[test]
    fn a_release_wakes_the_first_waiter_only() {
        let waiters = waiters();
        let (first, second) = (waiters.join(CHANNEL), waiters.join(CHANNEL));
        waiters.call(CHANNEL);
        assert!(!is_called(&second) && is_called(&first));
        // It asks, and another client was faster.
        first.refused();
        waiters.call(CHANNEL);
        assert!(!is_called(&second) && is_called(&first));
        first.served();
        waiters.call(CHANNEL);
        assert!(is_called(&second));
    }

    #[test]
    fn a_waiter_that_leaves_awake_passes_its_wake_up_on() {
        for has_asked in [false, true] {
            let waiters = waiters();
            let (first, second) = (waiters.join(CHANNEL), waiters.join(CHANNEL));
            waiters.call(CHANNEL);
            assert_eq!(has_asked, has_asked && is_called(&first));
            drop(first);
            assert!(is_called(&second));
        }
    }

    #[test]
    fn a_waiter_that_leaves_asleep_wakes_no_other() {
        let waiters = waiters();
        let (first, second) = (waiters.join(CHANNEL), waiters.join(CHANNEL));
        drop(first);
        assert!(!is_called(&second));
    }

    #[test]
    fn a_wake_up_while_all_are_awake_is_kept() {
        let waiters = waiters();
        let only = waiters.join(CHANNEL);
        waiters.call(CHANNEL);
        assert!(is_called(&only));
        waiters.call(CHANNEL);
        only.refused();
        assert!(is_called(&only));
        only.refused();
        assert!(!is_called(&only));
    }

    #[test]
    fn a_new_subscription_wakes_the_first_waiter_once() {
        let waiters = waiters();
        let (first, second) = (waiters.join(CHANNEL), waiters.join(CHANNEL));
        let (begun, ended) = waiters.changes();
        assert_eq!((begun.as_slice(), ended.len()), (&[Arc::from(CHANNEL)][..], 0));
        waiters.subscribed(&begun);
        assert!(is_called(&first) && !is_called(&second));
        waiters.subscribed(&begun);
        assert!(!is_called(&second), "once");
        waiters.unsubscribed();
        assert_eq!(waiters.changes().0, begun);
        waiters.subscribed(&begun);
        assert!(is_called(&second), "what was missed meanwhile");
    }

    #[test]
    fn nothing_is_left_of_a_removed_queue() {
        let waiters = waiters();
        let ticket = waiters.join(CHANNEL);
        drop(waiters.changes());
        drop(ticket);
        assert!(waiters.is_empty());
        let (begun, ended) = waiters.changes();
        assert_eq!((begun.len(), ended.as_slice()), (0, &[Arc::from(CHANNEL)][..]));
        // A queue that comes and goes between two calls of `changes` is not listed; one that exists again
        // counts as new.
        drop(waiters.join(CHANNEL));
        let _again = waiters.join(CHANNEL);
        assert_eq!(waiters.changes().0, ended);
    }
}
