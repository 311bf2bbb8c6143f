//! One acquisition on ZooKeeper: the recipe from the first request to the release.

use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes, timeout_at};
use dlock_zookeeper::path::guid;
use dlock_zookeeper::{Client, CreateMode, Error, Fired};
use futures_util::future::{join, join_all, select_all};

use super::place::{Place, Position};
use super::sessions::Sessions;
use crate::backend::{Acquisition, Answer, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::token::FencingToken;

/// One attempt to hold one lease on ZooKeeper.
pub struct ZooKeeperAcquisition<R: Runtime> {
    sessions: Arc<Sessions<R>>,
    claim: Claim,
    /// The entry in the queue: from before its creation is sent until it is certainly gone.
    place: Option<Place<R>>,
    /// The tokens of the permits or readers beside the one that was granted.
    beside: Vec<FencingToken>,
}

impl<R: Runtime> ZooKeeperAcquisition<R> {
    pub(super) fn new(sessions: &Arc<Sessions<R>>, claim: Claim) -> Self {
        Self { sessions: Arc::clone(sessions), claim, place: None, beside: Vec::new() }
    }

    /// Returns the place of the claim in the queue; enqueues the claim first if it is not there.
    async fn find_place(&mut self, deadline: Instant) -> Result<Answer, Error> {
        let client = match &self.place {
            Some(place) => place.client().clone(),
            None => self.sessions.current(),
        };
        let answer = self.request_place(&client, deadline).await;
        self.judge(answer, &client)
    }

    async fn request_place(&mut self, client: &Client<R>, deadline: Instant) -> Result<Answer, Error> {
        client.established(deadline).await?;
        // Read before the request that proves the session alive: a sync or a create, in which the leader
        // takes part.
        let since = self.sessions.runtime().now();
        let known = match &mut self.place {
            Some(place) => place.look(deadline).await?,
            None => None,
        };
        let Position { token, is_served, is_used_up, refusal } = match known {
            Some(position) => position,
            None => self.enter(client, deadline).await?,
        };
        if is_used_up {
            return Err(Error::QueueUsedUp { path: self.sessions.queue(&self.claim.key) });
        }
        if let Some(waiting) = refusal {
            // The release that follows deletes the entry. Until then it counts for the claims behind it.
            reached!(client.runtime(), entry_behind_full_queue);
            return Ok(Answer::Full { waiting });
        }
        if !is_served {
            return Ok(Answer::Queued { position: token.as_u64() });
        }
        let has_others = self.claim.permits > 1 || self.claim.is_shared();
        if let Some(place) = self.place.as_ref().filter(|_| has_others) {
            self.beside = place.tokens_ahead(deadline).await?;
        }
        let left = timeout(client)?;
        Ok(Answer::Granted { token, since, left })
    }

    /// Puts the claim at the end of the queue; creates the queue if it does not exist.
    async fn enter(&mut self, client: &Client<R>, deadline: Instant) -> Result<Position, Error> {
        let queue = self.sessions.queue(&self.claim.key);
        match self.create(client, &queue, deadline).await {
            Err(Error::NoNode { .. }) => {
                reached!(client.runtime(), queue_missing);
                make(client, &queue, deadline).await?;
                self.create(client, &queue, deadline).await
            }
            position => position,
        }
    }

    async fn create(
        &mut self,
        client: &Client<R>,
        queue: &str,
        deadline: Instant,
    ) -> Result<Position, Error> {
        // A guid for each: an entry of an earlier session can't be taken for this one.
        let place = Place::new(client.clone(), queue, guid(client.runtime()), &self.claim);
        let place = self.place.insert(place);
        let position = place.create(&self.claim.owner, deadline).await;
        if position.as_ref().is_err_and(Error::is_refusal) && !place.is_known() {
            self.place = None;
        }
        position
    }

    /// Forgets what ended with the session, if `result` says that the session is over.
    fn judge<T>(&mut self, result: Result<T, Error>, client: &Client<R>) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_session_over) {
            sometimes!(client.runtime(), place_lost_with_session, self.place.is_some());
            self.sessions.retire(client);
            self.place = None;
        }
        result
    }
}

impl<R: Runtime> Acquisition for ZooKeeperAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let had_place = self.place.is_some();
        let answer = match self.find_place(deadline).await {
            // The session ended unnoticed. No place was lost with it: the next session will do.
            Err(error) if error.is_session_over() && !had_place => {
                reached!(self.sessions.runtime(), session_ended_unnoticed);
                self.find_place(deadline).await
            }
            answer => answer,
        };
        answer.map_err(|error| self.sessions.failure(error))
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Some(place) = &self.place else { return Ok(()) };
        let client = place.client().clone();
        let wait = async {
            let watches = place.watch_ahead(deadline).await?;
            if !watches.is_empty() {
                // The reason does not matter, not even a lost connection: the next request finds out which
                // entries are ahead.
                let (fired, ..) = select_all(watches).await;
                sometimes!(client.runtime(), woken_by_predecessor, fired == Fired::Deleted);
                sometimes!(client.runtime(), watch_lost, fired == Fired::Disconnected);
            }
            Ok(())
        };
        let waited = timeout_at(self.sessions.runtime(), deadline, wait).await.unwrap_or(Ok(()));
        self.judge(waited, &client).map_err(|error| self.sessions.failure(error))
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Some(place) = &self.place else { return Ok(Renewal::NotOwner) };
        let client = place.client().clone();
        let proof = async {
            client.established(deadline).await?;
            let since = self.sessions.runtime().now();
            let is_in_place = place.is_in_place(deadline).await?;
            Ok((is_in_place, since, timeout(&client)?))
        };
        let proof = proof.await;
        match self.judge(proof, &client) {
            Ok((true, since, left)) => Ok(Renewal::Extended { since, left }),
            Ok((false, ..)) => Ok(Renewal::NotOwner),
            Err(error) if error.is_session_over() => Ok(Renewal::NotOwner),
            Err(error) => Err(self.sessions.failure(error)),
        }
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Some(place) = &mut self.place else { return Ok(Released::NotOwner) };
        let client = place.client().clone();
        let deleted = place.delete(deadline).await;
        match self.judge(deleted, &client) {
            Ok(deleted) => {
                self.place = None;
                Ok(if deleted { Released::Done } else { Released::NotOwner })
            }
            Err(error) if error.is_session_over() => Ok(Released::NotOwner),
            Err(error) => Err(self.sessions.failure(error)),
        }
    }

    fn beside(&self) -> Vec<FencingToken> {
        self.beside.clone()
    }

    fn needs_cleanup(&self) -> bool {
        self.place.is_some()
    }
}

/// Creates a queue and its parents. All stay: ZooKeeper's counter lives in the queue. A queue is deleted only
/// once its counter has reached its end.
async fn make<R: Runtime>(client: &Client<R>, queue: &str, deadline: Instant) -> Result<(), Error> {
    let make = |path| client.create(path, b"", CreateMode::PERSISTENT, deadline);
    let parents = queue.match_indices('/').skip(1).map(|(end, _)| make(&queue[..end]));
    // The parents may exist, without the right to create them: the queue's own answer says if one is missing.
    match join(join_all(parents), make(queue)).await.1 {
        Ok(_) | Err(Error::NodeExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the session timeout that the servers have chosen.
fn timeout<R: Runtime>(client: &Client<R>) -> Result<Duration, Error> {
    client.session().map(|session| session.timeout).ok_or(Error::SessionExpired)
}

probes! {
    /// The first claim on a key found no queue, and made one.
    reached queue_missing;
    /// A claim lost its place with its session.
    sometimes place_lost_with_session;
    /// A call found that the session had ended without a notice, and went on in a new one.
    reached session_ended_unnoticed;
    /// A watch fired: the entry ahead was deleted.
    sometimes woken_by_predecessor;
    /// A watch ended with its connection: the waiter looks again.
    sometimes watch_lost;
    /// A claim found as many waiters ahead as may be there, and is refused.
    reached entry_behind_full_queue;
}
