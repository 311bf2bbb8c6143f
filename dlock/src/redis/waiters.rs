//! The wait queues of this client, one for each lock, and their wake-ups.
//!
//! The server's message that a lock was released wakes one waiter of each client: the first in the queue that
//! is not awake yet. A waiter that was woken requests the lock, and stays in the queue until it is granted
//! the lock or leaves. No wake-up is lost: if all waiters are awake already, the wake-up goes to the first
//! one whose request is refused, and a waiter that leaves while it is awake passes its wake-up on.
//!
//! If the server keeps a queue, the message names the place of the waiter that is next, and wakes that one
//! alone: no other can be served.

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
    /// The place in the server's queue that was named last, if its waiter was awake or not here yet.
    next_place: Option<u64>,
}

struct Waiter {
    ticket: u64,
    /// The place in the server's queue, if it keeps one.
    place: Option<u64>,
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
        let (place, bell_of_queue) = (None, Arc::clone(&bell));
        let waiter = Waiter { ticket: number, place, stage: Stage::Waiting, bell: bell_of_queue };
        queue.waiters.push_back(waiter);
        if queue.waiters.len() == 1 {
            state.touched.insert(Arc::clone(&channel));
        }
        Ticket { waiters: Arc::clone(self), channel, number, bell }
    }

    /// Wakes the next waiter of `channel`: its lock was released. With a place, wakes the waiter at that
    /// place of the server's queue.
    pub(super) fn call(&self, channel: &str, place: Option<u64>) {
        if let Some(queue) = self.state().queues.get_mut(channel) {
            match place {
                None => queue.call(),
                Some(place) => queue.call_place(place),
            }
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
    /// Wakes the first waiter that is not awake: with places in the server's queue, the one with the lowest.
    fn call(&mut self) {
        let waiting = self.waiters.iter_mut().filter(|waiter| waiter.stage == Stage::Waiting);
        match waiting.min_by_key(|waiter| waiter.place) {
            Some(waiter) => waiter.wake(),
            None => self.has_spare_call = true,
        }
    }

    /// Wakes the waiter at `place`, now or once it waits there.
    fn call_place(&mut self, place: u64) {
        let is_next = |waiter: &&mut Waiter| waiter.stage == Stage::Waiting && waiter.place == Some(place);
        self.next_place = match self.waiters.iter_mut().find(is_next) {
            Some(waiter) => {
                waiter.wake();
                None
            }
            None => Some(place),
        };
    }

    fn place(&self, ticket: u64) -> Option<usize> {
        self.waiters.iter().position(|waiter| waiter.ticket == ticket)
    }
}

impl Waiter {
    fn wake(&mut self) {
        self.stage = Stage::Called;
        self.bell.notify_one();
    }
}

impl Ticket {
    /// Notes the place in the server's queue. If that was named meanwhile, the waiter is woken.
    pub(super) fn at(&self, place: u64) {
        self.change(|queue, number| {
            queue.waiters[number].place = Some(place);
            if queue.next_place == Some(place) {
                queue.call_place(place);
            }
        });
    }

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
        waiters.call(CHANNEL, None);
        assert!(!is_called(&second) && is_called(&first));
        // It asks, and another client was faster.
        first.refused();
        waiters.call(CHANNEL, None);
        assert!(!is_called(&second) && is_called(&first));
        first.served();
        waiters.call(CHANNEL, None);
        assert!(is_called(&second));
    }

    #[test]
    fn a_waiter_that_leaves_awake_passes_its_wake_up_on() {
        for has_asked in [false, true] {
            let waiters = waiters();
            let (first, second) = (waiters.join(CHANNEL), waiters.join(CHANNEL));
            waiters.call(CHANNEL, None);
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
        waiters.call(CHANNEL, None);
        assert!(is_called(&only));
        waiters.call(CHANNEL, None);
        only.refused();
        assert!(is_called(&only));
        only.refused();
        assert!(!is_called(&only));
    }

    #[test]
    fn a_release_wakes_the_waiter_at_the_place_that_is_next() {
        let waiters = waiters();
        let (late, early) = (waiters.join(CHANNEL), waiters.join(CHANNEL));
        late.at(8);
        early.at(5);
        waiters.call(CHANNEL, Some(8));
        assert!(is_called(&late) && !is_called(&early));
        late.refused();
        // The waiter at place 6 is another client's.
        waiters.call(CHANNEL, Some(6));
        assert!(!is_called(&late) && !is_called(&early));
        // Without a place, the next one is the one with the lowest.
        waiters.call(CHANNEL, None);
        assert!(is_called(&early) && !is_called(&late));
    }

    #[test]
    fn a_place_that_is_named_too_early_is_kept() {
        let waiters = waiters();
        let other = waiters.join(CHANNEL);
        other.at(4);
        let new = waiters.join(CHANNEL);
        waiters.call(CHANNEL, Some(5));
        assert!(!is_called(&new) && !is_called(&other));
        new.at(5);
        assert!(is_called(&new), "named before it had its place");
        waiters.call(CHANNEL, Some(5));
        new.refused();
        assert!(!is_called(&new));
        new.at(5);
        assert!(is_called(&new), "named while its request was on its way");
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
