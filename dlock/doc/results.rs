use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use dlock::flight::{Claimed, FlightResult, Results, Stored};
use dlock::{FencingToken, Instant, LockKey, Owner};

/// Results in memory, for one process. Clones share them.
#[derive(Clone, Default)]
pub struct InMemory(Arc<Mutex<BTreeMap<LockKey, Kept>>>);

/// The state of a key.
#[derive(Default)]
struct Kept {
    seen: Option<FencingToken>,
    result: Option<FlightResult>,
}

impl Kept {
    /// Notes a token; returns false if a higher one has been seen.
    fn admits(&mut self, token: FencingToken) -> bool {
        let is_stale = self.seen.is_some_and(|seen| token < seen);
        self.seen = self.seen.max(Some(token));
        !is_stale
    }
}

impl Results for InMemory {
    type Error = Infallible;

    async fn get(&self, key: &LockKey, _: Instant) -> Result<Option<FlightResult>, Infallible> {
        Ok(self.0.lock().unwrap().get(key).and_then(|kept| kept.result.clone()))
    }

    async fn claim(
        &self,
        key: &LockKey,
        token: FencingToken,
        _: &Owner,
        _: Instant,
    ) -> Result<Claimed, Infallible> {
        let mut all = self.0.lock().unwrap();
        let kept = all.entry(key.clone()).or_default();
        Ok(if kept.admits(token) { Claimed::Yes(kept.result.clone()) } else { Claimed::Stale })
    }

    async fn put(
        &self,
        key: &LockKey,
        result: &FlightResult,
        _: &Owner,
        _: Instant,
    ) -> Result<Stored, Infallible> {
        let mut all = self.0.lock().unwrap();
        let kept = all.entry(key.clone()).or_default();
        if !kept.admits(result.token) {
            return Ok(Stored::Stale);
        }
        kept.result = Some(result.clone());
        Ok(Stored::Accepted)
    }
}
