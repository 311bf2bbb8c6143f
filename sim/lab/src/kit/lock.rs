//! A lock that does as the library's own, except in the calls in which its mistake is made.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::redis::Redis;
use dlock::{
    Acquisition, Answer, AnyBackend, Backend, BackendError, Claim, FencingToken, Holder, Instant, LockKey,
    Released, Renewal, Runtime, timeout_at,
};
use sim::world::runtime::SimRuntime;

use super::Faultless;
use super::{etcd, zookeeper};
use crate::wire::Wire;
use crate::{Correct, Workplace};

/// A mistake: it replaces one or more of the correct calls of a lock.
pub trait LockMistake<B: Correct = Redis<SimRuntime>>: Send + Sync + 'static {
    /// True if its request sends commands of its own. The lock then notes which requests had no answer, as
    /// the library does for its own, and releases until none of them can still take effect.
    const SENDS: bool = false;

    /// True if the same owner repeats a request of its own that had no answer. By default the lock abandons
    /// the request, and continues as another owner.
    const ASKS_AGAIN: bool = false;

    /// Replaces [`Acquisition::request`], with its errors.
    fn request(
        own: &mut Attempt<B>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, BackendError>> + Send {
        own.correct.request(deadline)
    }

    /// Replaces [`Acquisition::wait`], with its errors.
    fn wait(
        own: &mut Attempt<B>,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), BackendError>> + Send {
        own.correct.wait(deadline)
    }

    /// Replaces [`Acquisition::renew`], with its errors.
    fn renew(
        own: &mut Attempt<B>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Renewal, BackendError>> + Send {
        own.correct.renew(deadline)
    }

    /// Replaces [`Acquisition::release`], with its errors.
    fn release(
        own: &mut Attempt<B>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Released, BackendError>> + Send {
        own.correct.release(deadline)
    }
}

impl<B: Correct> LockMistake<B> for Faultless {}

/// One acquisition for a mistake to use: the correct one, and clients that send plain commands.
pub struct Attempt<B: Correct = Redis<SimRuntime>> {
    backend: B,
    /// Sends commands to the first server, if that is a Redis.
    pub wire: Wire<SimRuntime>,
    /// Sends requests to the servers, if they are members of etcd.
    pub etcd: etcd::Plain,
    /// Reads the queues of the servers, if they are a ZooKeeper ensemble.
    pub zookeeper: zookeeper::Plain,
    /// The memory that all acquisitions of one client share.
    pub client: Arc<Memory>,
    /// The key, owner and TTL of the acquisition.
    pub claim: Claim,
    /// The correct acquisition.
    pub correct: B::Acquisition,
    /// The drift margin by which trust in the lease is shortened.
    pub margin: Duration,
    /// The times of the requests that sent the mistake's own commands and had no answer.
    unanswered: Vec<Instant>,
    /// The send time of the request for the last grant or renewal, if the mistake needs it.
    pub renewed: Option<Instant>,
    /// A number that the mistake notes: a token, a place in the queue, a time.
    pub noted: Option<u64>,
    /// The tokens of the other permits, if the mistake's own commands ask for them.
    pub beside: Option<Vec<FencingToken>>,
}

/// The memory of a client with a mistake from one acquisition to the next.
#[derive(Default)]
pub struct Memory {
    happened: AtomicBool,
    /// The tokens in hand, by the counter that they come from.
    tokens: Mutex<BTreeMap<String, Range<u64>>>,
}

impl Memory {
    /// Returns true if the event that the mistake waits for has happened.
    pub fn is_set(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Notes whether the event has happened.
    pub fn set(&self, happened: bool) {
        self.happened.store(happened, Ordering::Relaxed);
    }

    /// Returns the tokens of `counter` that the client has in hand.
    pub fn tokens(&self, counter: &str) -> Range<u64> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(counter).cloned().unwrap_or_default()
    }

    /// Notes the tokens of `counter` that the client has in hand.
    pub fn set_tokens(&self, counter: &str, tokens: Range<u64>) {
        let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(counter.to_owned(), tokens);
    }
}

impl<B: Correct> Attempt<B> {
    /// Returns the runtime of the worker.
    pub fn runtime(&self) -> &SimRuntime {
        self.backend.runtime()
    }

    /// Opens another correct acquisition of the same claim.
    pub fn another(&self) -> B::Acquisition {
        self.open(self.claim.clone())
    }

    /// Opens a correct acquisition of this claim.
    pub fn open(&self, claim: Claim) -> B::Acquisition {
        self.backend.open(claim)
    }

    /// Returns true if the server may have something of this acquisition without the client knowing it.
    pub fn needs_cleanup(&self) -> bool {
        self.is_unanswered() || self.correct.needs_cleanup()
    }

    /// Returns true if a command of the mistake's own may still take effect. As the library does, the lock
    /// does not wait for a command that the network delays for longer than the TTL.
    fn is_unanswered(&self) -> bool {
        let now = self.runtime().now();
        self.unanswered.iter().any(|sent| now < *sent + self.claim.ttl)
    }

    /// Notes a request whose commands are about to be sent.
    fn sending(&mut self) {
        let (now, ttl) = (self.runtime().now(), self.claim.ttl);
        self.unanswered.retain(|sent| now < *sent + ttl);
        self.unanswered.push(now);
    }

    /// Notes that the server has ended the lease, so the one request without an answer had taken effect. If
    /// there were several, it is not known which one.
    fn ended(&mut self) {
        if self.unanswered.len() == 1 {
            self.unanswered.clear();
        }
    }

    /// Waits for the answer to a plain command; none by `deadline` counts as lost.
    ///
    /// # Errors
    ///
    /// [`BackendError::NoAnswer`] without an answer by then, or the error of the command.
    pub async fn by<T>(
        &self,
        deadline: Instant,
        command: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        timeout_at(self.runtime(), deadline, command).await.unwrap_or(Err(BackendError::NoAnswer))
    }
}

/// The lock `B` with the mistake `M`.
struct Mistaken<B, M> {
    correct: B,
    wire: Wire<SimRuntime>,
    etcd: etcd::Plain,
    zookeeper: zookeeper::Plain,
    client: Arc<Memory>,
    drift: dlock::DriftMargin,
    mistake: PhantomData<fn() -> M>,
}

/// One acquisition of a [`Mistaken`] lock.
struct MistakenAcquisition<B: Correct, M>(Attempt<B>, PhantomData<fn() -> M>);

/// Makes the lock `B` of a worker with the mistake `M`. Returns `None` on a system that is not that of `B`.
pub fn lock_with<B: Correct, M: LockMistake<B>>(place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
    let (correct, address) = (B::at(place)?, place.servers.first()?);
    if correct.system() != place.options.system.name() {
        return None;
    }
    Some(AnyBackend::new(Mistaken::<B, M> {
        correct,
        wire: Wire::new(place.runtime.clone(), address),
        etcd: etcd::Plain::new(place.runtime.clone(), &place.servers),
        zookeeper: zookeeper::Plain::new(place.runtime.clone(), &place.servers, place.lock.ttl),
        client: Arc::default(),
        drift: place.lock.drift,
        mistake: PhantomData,
    }))
}

impl<B: Clone, M> Clone for Mistaken<B, M> {
    fn clone(&self) -> Self {
        Self {
            correct: self.correct.clone(),
            wire: self.wire.clone(),
            etcd: self.etcd.clone(),
            zookeeper: self.zookeeper.clone(),
            client: Arc::clone(&self.client),
            drift: self.drift,
            mistake: PhantomData,
        }
    }
}

impl<B: Correct, M: LockMistake<B>> Backend for Mistaken<B, M> {
    type Runtime = SimRuntime;
    type Acquisition = MistakenAcquisition<B, M>;

    fn runtime(&self) -> &SimRuntime {
        self.correct.runtime()
    }

    fn system(&self) -> &'static str {
        self.correct.system()
    }

    fn session_ttl(&self) -> Option<Duration> {
        self.correct.session_ttl()
    }

    fn has_permits(&self) -> bool {
        self.correct.has_permits()
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        self.correct.holder(key, deadline).await
    }

    fn has_readers(&self) -> bool {
        self.correct.has_readers()
    }

    fn has_queue(&self, permits: u32) -> bool {
        self.correct.has_queue(permits)
    }

    fn open(&self, claim: Claim) -> MistakenAcquisition<B, M> {
        let attempt = Attempt {
            backend: self.correct.clone(),
            wire: self.wire.clone(),
            etcd: self.etcd.clone(),
            zookeeper: self.zookeeper.clone(),
            client: Arc::clone(&self.client),
            correct: self.correct.open(claim.clone()),
            margin: self.drift.of(claim.ttl),
            claim,
            unanswered: Vec::new(),
            renewed: None,
            noted: None,
            beside: None,
        };
        MistakenAcquisition(attempt, PhantomData)
    }
}

impl<B: Correct, M: LockMistake<B>> Acquisition for MistakenAcquisition<B, M> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        if !M::SENDS {
            return M::request(&mut self.0, deadline).await;
        }
        // The request stays noted if the call fails or is dropped.
        self.0.sending();
        let answer = M::request(&mut self.0, deadline).await?;
        self.0.unanswered.pop();
        Ok(answer)
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        M::wait(&mut self.0, deadline).await
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        M::renew(&mut self.0, deadline).await
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let released = M::release(&mut self.0, deadline).await?;
        if released == Released::Done {
            self.0.ended();
        }
        Ok(released)
    }

    fn beside(&self) -> Vec<FencingToken> {
        self.0.beside.clone().unwrap_or_else(|| self.0.correct.beside())
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.0.claim.ttl = ttl;
        self.0.correct.set_ttl(ttl);
    }

    fn needs_cleanup(&self) -> bool {
        self.0.needs_cleanup()
    }

    fn is_repeatable(&self) -> bool {
        self.0.correct.is_repeatable() && (M::ASKS_AGAIN || !self.0.is_unanswered())
    }
}
