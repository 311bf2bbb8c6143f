use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Instant};
use dlock::{Holder, LockKey, Owner, Released, Renewal, Runtime};

/// A lock server in memory. It answers each request at once, so no answer is ever lost.
#[derive(Clone)]
pub struct Memory<R> {
    runtime: R,
    keys: Arc<Mutex<BTreeMap<LockKey, Stored>>>,
}

/// A key of the server.
#[derive(Default)]
struct Stored {
    /// The owner of the lease, and the end of the lease.
    holder: Option<(Owner, Instant)>,
    /// The number of grants: the fencing token of the last one.
    grants: u64,
}

/// One attempt to hold one lease.
pub struct Attempt<R> {
    server: Memory<R>,
    claim: Claim,
}

impl<R: Runtime> Memory<R> {
    /// Creates a server without keys.
    pub fn new(runtime: R) -> Self {
        Self { runtime, keys: Arc::default() }
    }
}

impl<R: Runtime> Backend for Memory<R> {
    type Runtime = R;
    type Acquisition = Attempt<R>;

    fn runtime(&self) -> &R {
        &self.runtime
    }

    fn system(&self) -> &'static str {
        "memory"
    }

    async fn holder(&self, key: &LockKey, _: Instant) -> Result<Option<Holder>, BackendError> {
        let (now, keys) = (self.runtime.now(), self.keys.lock().unwrap());
        let Some(Stored { holder: Some((owner, end)), grants }) = keys.get(key) else { return Ok(None) };
        let name = owner.prefix().to_owned();
        Ok(FencingToken::new(*grants).filter(|_| *end > now).map(|token| Holder { token, name }))
    }

    fn open(&self, claim: Claim) -> Attempt<R> {
        Attempt { server: self.clone(), claim }
    }
}

impl<R: Runtime> Attempt<R> {
    /// Moves the end of this owner's lease to `end`, or ends the lease. Returns false if there is none.
    fn change(&self, end: Option<Instant>) -> bool {
        let now = self.server.runtime.now();
        let mut keys = self.server.keys.lock().unwrap();
        let stored = keys.entry(self.claim.key.clone()).or_default();
        let is_own = |(owner, end): &(Owner, Instant)| *owner == self.claim.owner && *end > now;
        let is_held = stored.holder.as_ref().is_some_and(is_own);
        if is_held {
            stored.holder = end.map(|end| (self.claim.owner.clone(), end));
        }
        is_held
    }
}

impl<R: Runtime> Acquisition for Attempt<R> {
    async fn request(&mut self, _: Instant) -> Result<Answer, BackendError> {
        let (since, left) = (self.server.runtime.now(), self.claim.ttl);
        let mut keys = self.server.keys.lock().unwrap();
        let stored = keys.entry(self.claim.key.clone()).or_default();
        if let Some((_, end)) = stored.holder.as_ref().filter(|(_, end)| *end > since) {
            return Ok(Answer::Taken { left: Some(end.saturating_since(since)) });
        }
        stored.grants += 1;
        stored.holder = Some((self.claim.owner.clone(), since + left));
        let token = FencingToken::new(stored.grants).unwrap();
        Ok(Answer::Granted { token, since, left })
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.server.runtime.sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, _: Instant) -> Result<Renewal, BackendError> {
        let (since, left) = (self.server.runtime.now(), self.claim.ttl);
        let is_extended = self.change(Some(since + left));
        Ok(if is_extended { Renewal::Extended { since, left } } else { Renewal::NotOwner })
    }

    async fn release(&mut self, _: Instant) -> Result<Released, BackendError> {
        Ok(if self.change(None) { Released::Done } else { Released::NotOwner })
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.claim.ttl = ttl;
    }

    fn needs_cleanup(&self) -> bool {
        false
    }
}
