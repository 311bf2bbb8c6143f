//! The progress of a run: the programs that have not ended, and the locks that are held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use history::{Event, Kind, Name};

use crate::faults::Call;
use crate::world::{World, lock};

/// The state on which the end of a run depends.
pub(crate) struct Progress {
    /// True if a fault may cancel a future. Otherwise no wakers are kept.
    may_cancel: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Programs that have not ended, by process number.
    busy: BTreeSet<usize>,
    /// Programs that have been asked to end, by process number; true once they have ended. Their processes
    /// are killed then, and may restart.
    terminated: BTreeMap<usize, bool>,
    /// Locks that are held, each as a server, a resource, and the owner if the resource may have several.
    held: BTreeSet<(Name, Name, Option<Name>)>,
    /// The resources that may have several owners, by the requests for them.
    shared: BTreeSet<Name>,
    /// Programs whose next or present future of the call is to be dropped.
    cancelled: BTreeSet<(usize, Call)>,
    /// The tasks that run cancellable futures, by the call.
    cancellable: BTreeMap<Call, Vec<Waker>>,
    /// The tasks that wait for programs to end or for locks to be free.
    waiting: Vec<Waker>,
}

impl Progress {
    /// Returns the state at the start: the programs with these numbers have not ended, and no lock is held.
    pub(super) fn new(programs: impl Iterator<Item = usize>, may_cancel: bool) -> Self {
        Self { may_cancel, state: Mutex::new(State { busy: programs.collect(), ..State::default() }) }
    }

    /// Notes that the program was started again, so that it has not ended.
    pub(super) fn begun(&self, program: usize) {
        lock(&self.state).busy.insert(program);
    }

    /// Notes that the program has ended, or will not restart. The run goes on until a program that was asked
    /// to end has been killed.
    pub(super) fn finished(&self, program: usize) {
        let mut state = lock(&self.state);
        match state.terminated.get_mut(&program) {
            Some(has_ended) => *has_ended = true,
            None => drop(state.busy.remove(&program)),
        }
        state.wake();
    }

    /// Notes that the program has been asked to end. A client that is not busy has ended already.
    pub(super) fn terminate(&self, program: usize, is_client: bool) {
        let mut state = lock(&self.state);
        let has_ended = is_client && !state.busy.contains(&program);
        state.terminated.entry(program).or_insert(has_ended);
    }

    /// Notes that the process of the program was killed.
    pub(super) fn killed(&self, program: usize) {
        let mut state = lock(&self.state);
        if state.terminated.remove(&program).is_some() {
            state.wake();
        }
    }

    /// Returns true if the program was asked to end, and has ended.
    pub(super) fn has_ended(&self, program: usize) -> bool {
        lock(&self.state).terminated.get(&program) == Some(&true)
    }

    /// Returns true once the program has ended after it was asked to, and false if its process was killed
    /// first.
    pub(super) fn poll_ended(&self, program: usize, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = lock(&self.state);
        match state.terminated.get(&program) {
            Some(true) => Poll::Ready(true),
            None => Poll::Ready(false),
            Some(false) => {
                state.waiting.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Notes that a server's process has died, so that the server holds no lock.
    pub(super) fn died(&self, server: &str) {
        lock(&self.state).held.retain(|(name, ..)| name.as_str() != server);
    }

    /// Tracks the locks that are held.
    pub(super) fn on_event(&self, event: &Event) {
        let mut state = lock(&self.state);
        let at = |key: &Name, owner: Option<Name>| (event.process.clone(), key.clone(), owner);
        match &event.kind {
            Kind::LeasePermits { key, .. } | Kind::LeaseShared { key, .. } => {
                state.shared.insert(key.clone());
            }
            Kind::KeyGranted { key, owner, .. } => {
                let owner = state.owner_of(key, owner);
                state.held.insert(at(key, owner));
            }
            Kind::KeyDeleted { key, owner, .. } | Kind::KeyExpired { key, owner: Some(owner) } => {
                let owner = state.owner_of(key, owner);
                state.held.remove(&at(key, owner));
                state.wake();
            }
            Kind::KeyExpired { key, owner: None } => {
                state.held.retain(|(server, held, _)| (server, held) != (&event.process, key));
                state.wake();
            }
            _ => {}
        }
    }

    /// Makes the program drop its future of the call at the next poll.
    pub(super) fn cancel(&self, program: usize, call: Call) {
        let mut state = lock(&self.state);
        state.cancelled.insert((program, call));
        state.cancellable.remove(&call).into_iter().flatten().for_each(Waker::wake);
    }

    /// Returns true if the program must drop its future of the call now. Otherwise wakes the task when it
    /// must.
    pub(super) fn poll_cancelled(&self, program: usize, call: Call, cx: &mut Context<'_>) -> bool {
        if !self.may_cancel {
            return false;
        }
        let mut state = lock(&self.state);
        if state.cancelled.remove(&(program, call)) {
            return true;
        }
        state.cancellable.entry(call).or_default().push(cx.waker().clone());
        false
    }

    /// Completes when every program has ended, or at the true time `limit`.
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
            let mut state = lock(&self.state);
            if done(&state) {
                return Poll::Ready(());
            }
            state.waiting.push(cx.waker().clone());
            drop(state);
            sleep.as_mut().poll(cx)
        })
        .await;
    }
}

impl State {
    /// Returns the owner if the resource may have several: the next owner of a mutex replaces the last one.
    fn owner_of(&self, key: &Name, owner: &Name) -> Option<Name> {
        self.shared.contains(key).then(|| owner.clone())
    }

    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}
