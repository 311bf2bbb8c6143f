//! The changes of a lock from one holder to the next: a backend that notes their times, and passes every call
//! on to another one. It is for a load on one key with one holder at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Holder, Instant, LockKey, Released,
    Renewal, Runtime,
};

/// A change from a holder to a waiter that had asked before the release was answered.
#[derive(Clone, Copy, Debug)]
pub struct Handover {
    /// The time of the grant.
    pub(crate) at: Instant,
    /// From the call of the release to the end of the waiter's last wait.
    pub(crate) wake: Duration,
    /// From the answer to the release to that end; zero if the wait ended before the answer.
    pub(crate) late: Duration,
    /// From the end of that wait to the grant.
    pub(crate) request: Duration,
    /// The duration of that wait.
    pub(crate) waited: Duration,
    /// The number of the waiter's waits.
    pub(crate) waits: u32,
}

/// The changes of a load. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Handovers(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    /// The last release, until the next grant.
    release: Option<Release>,
    all: Vec<Handover>,
}

#[derive(Clone, Copy)]
struct Release {
    called: Instant,
    answered: Option<Instant>,
}

impl Handovers {
    /// Returns all changes so far, in the order of the grants.
    pub(super) fn all(&self) -> Vec<Handover> {
        self.log().all.clone()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A backend whose changes of holders are noted.
#[derive(Clone)]
pub(super) struct Observed<B> {
    backend: B,
    handovers: Handovers,
}

impl<B: Backend> Observed<B> {
    pub(super) fn new(backend: B, handovers: &Handovers) -> Self {
        Self { backend, handovers: handovers.clone() }
    }
}

impl<B: Backend> Backend for Observed<B> {
    type Runtime = B::Runtime;
    type Acquisition = ObservedAcquisition<B>;

    fn runtime(&self) -> &B::Runtime {
        self.backend.runtime()
    }

    fn system(&self) -> &'static str {
        self.backend.system()
    }

    fn session_ttl(&self) -> Option<Duration> {
        self.backend.session_ttl()
    }

    fn has_permits(&self) -> bool {
        self.backend.has_permits()
    }

    fn has_readers(&self) -> bool {
        self.backend.has_readers()
    }

    fn has_queue(&self, permits: u32) -> bool {
        self.backend.has_queue(permits)
    }

    async fn connect(&self, deadline: Instant) -> Result<(), BackendError> {
        self.backend.connect(deadline).await
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        self.backend.holder(key, deadline).await
    }

    fn open(&self, claim: Claim) -> ObservedAcquisition<B> {
        let acquisition = self.backend.open(claim);
        let (asked, wait, released) = (None, None, None);
        ObservedAcquisition {
            observed: self.clone(),
            acquisition,
            asked,
            wait,
            waits: 0,
            is_held: false,
            released,
        }
    }
}

/// One attempt of an [`Observed`] backend.
pub(super) struct ObservedAcquisition<B: Backend> {
    observed: Observed<B>,
    acquisition: B::Acquisition,
    /// The time of the first request.
    asked: Option<Instant>,
    /// The begin and the end of the last wait, if it was not dropped.
    wait: Option<(Instant, Instant)>,
    waits: u32,
    is_held: bool,
    /// The time of the first call of release.
    released: Option<Instant>,
}

impl<B: Backend> ObservedAcquisition<B> {
    fn now(&self) -> Instant {
        self.observed.runtime().now()
    }

    fn granted(&mut self) {
        self.is_held = true;
        let at = self.now();
        let mut log = self.observed.handovers.log();
        let (Some(release), Some((begun, ended)), Some(asked)) = (log.release.take(), self.wait, self.asked)
        else {
            return;
        };
        let answered = release.answered.unwrap_or(at);
        if asked < answered {
            log.all.push(Handover {
                at,
                wake: ended.saturating_since(release.called),
                late: ended.saturating_since(answered),
                request: at.saturating_since(ended),
                waited: ended.saturating_since(begun),
                waits: self.waits,
            });
        }
    }
}

impl<B: Backend> Acquisition for ObservedAcquisition<B> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let now = self.now();
        self.asked.get_or_insert(now);
        let answer = self.acquisition.request(deadline).await;
        if let Ok(Answer::Granted { .. } | Answer::Unfenced { .. }) = answer {
            self.granted();
        }
        answer
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let begun = self.now();
        self.wait = None;
        self.waits += 1;
        let waited = self.acquisition.wait(deadline).await;
        self.wait = Some((begun, self.now()));
        waited
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        self.acquisition.renew(deadline).await
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        if std::mem::take(&mut self.is_held) {
            let called = self.now();
            self.released = Some(called);
            self.observed.handovers.log().release = Some(Release { called, answered: None });
        }
        let released = self.acquisition.release(deadline).await;
        if released.is_ok() {
            let now = self.now();
            // The next holder may have been granted the lock already.
            let mut log = self.observed.handovers.log();
            let own = log.release.as_mut().filter(|release| Some(release.called) == self.released);
            if let Some(release) = own {
                release.answered.get_or_insert(now);
            }
        }
        released
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.acquisition.set_ttl(ttl);
    }

    fn beside(&self) -> Vec<FencingToken> {
        self.acquisition.beside()
    }

    fn needs_cleanup(&self) -> bool {
        self.acquisition.needs_cleanup()
    }

    fn is_repeatable(&self) -> bool {
        self.acquisition.is_repeatable()
    }
}
