//! How far a run has come: who of the workers is done, and which locks are held.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use resource::audit::{Event, Kind, Name};

use crate::world::{World, lock};

/// What the harness waits for.
pub(super) struct Progress(Mutex<State>);

#[derive(Default)]
struct State {
    /// Workers that have rounds left.
    busy: BTreeSet<usize>,
    /// Locks that a server holds for somebody: the server and the resource.
    held: BTreeSet<(Name, Name)>,
    /// Workers whose acquire is to be dropped.
    cancelled: BTreeSet<usize>,
    cancellable: Vec<Waker>,
    harness: Option<Waker>,
}

impl Progress {
    /// So many workers have rounds left, and no lock is held.
    pub(super) fn new(workers: usize) -> Self {
        Self(Mutex::new(State { busy: (0..workers).collect(), ..State::default() }))
    }

    /// The worker was started anew, and has all its rounds before it, also if it was done with them.
    pub(super) fn begun(&self, worker: usize) {
        lock(&self.0).busy.insert(worker);
    }

    /// The worker has no rounds left.
    pub(super) fn finished(&self, worker: usize) {
        let mut state = lock(&self.0);
        state.busy.remove(&worker);
        state.wake();
    }

    /// A lock server's process has died, and knows of no lock any more.
    pub(super) fn died(&self, server: &str) {
        lock(&self.0).held.retain(|(name, _)| name.as_str() != server);
    }

    /// Keeps track of the locks that are held.
    pub(super) fn on_event(&self, event: &Event) {
        match &event.kind {
            Kind::KeyGranted { key, .. } => {
                lock(&self.0).held.insert((event.process.clone(), key.clone()));
            }
            Kind::KeyDeleted { key, .. } | Kind::KeyExpired { key, .. } => {
                let mut state = lock(&self.0);
                state.held.remove(&(event.process.clone(), key.clone()));
                state.wake();
            }
            _ => {}
        }
    }

    /// The worker is to drop its acquire when it is next polled.
    pub(super) fn cancel(&self, worker: usize) {
        let mut state = lock(&self.0);
        state.cancelled.insert(worker);
        state.cancellable.drain(..).for_each(Waker::wake);
    }

    /// Whether the worker's acquire is to be dropped now; else the task is woken when it is.
    pub(super) fn poll_cancelled(&self, worker: usize, cx: &mut Context<'_>) -> bool {
        let mut state = lock(&self.0);
        if state.cancelled.remove(&worker) {
            return true;
        }
        state.cancellable.push(cx.waker().clone());
        false
    }

    /// Completes when no worker has rounds left, or at the true time `limit`.
    pub(super) async fn all_finished(&self, world: &World, limit: u64) {
        self.until(world, limit, |state| state.busy.is_empty()).await;
    }

    /// Completes when no lock is held, or at the true time `limit`.
    pub(super) async fn none_held(&self, world: &World, limit: u64) {
        self.until(world, limit, |state| state.held.is_empty()).await;
    }

    async fn until(&self, world: &World, limit: u64, done: impl Fn(&State) -> bool) {
        let mut sleep = std::pin::pin!(world.sleep_until(limit));
        std::future::poll_fn(|cx| {
            let mut state = lock(&self.0);
            if done(&state) {
                return Poll::Ready(());
            }
            state.harness = Some(cx.waker().clone());
            drop(state);
            sleep.as_mut().poll(cx)
        })
        .await;
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.harness.take() {
            waker.wake();
        }
    }
}
