//! One acquisition on etcd: its place in the queue, from the first request to the release.

use std::pin::pin;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes, timeout_at};
use etcd_client::{Event, EventType, GetOptions, Txn, WatchFilterType, WatchOptions, WatchStream};
use futures_util::future::{Either, select, try_join};

use super::connector::{Connection, Connector};
use super::error::meaning;
use super::keeper;
use super::place::{Ahead, Entry, Place, Reply, Sight};
use super::session::Session;
use super::sessions::Sessions;
use super::trail::Trail;
use crate::backend::{Acquisition, Answer, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::token::FencingToken;

/// One attempt to hold one lease on etcd.
pub struct EtcdAcquisition<R: Runtime> {
    cluster: Cluster<R>,
    place: Arc<Place>,
    trail: Trail,
}

/// The cluster, through the session that all acquisitions share.
struct Cluster<R>(Arc<Sessions<R>>);

impl<R: Runtime> EtcdAcquisition<R> {
    pub(super) fn new(sessions: &Arc<Sessions<R>>, claim: &Claim) -> Self {
        let cluster = Cluster(Arc::clone(sessions));
        Self { cluster, place: Arc::new(Place::of(claim)), trail: Trail::default() }
    }

    /// Returns the session of the claim, or the client's if the claim has none. If the claim's session is
    /// over, removes the claim's key under it first: that key must not be ahead of the new one.
    async fn session(&mut self, deadline: Instant) -> Result<Arc<Session>, BackendError> {
        let Self { cluster, trail, .. } = self;
        if let Some(session) = trail.session() {
            if session.check(cluster.now()).is_ok() {
                return Ok(Arc::clone(session));
            }
            reached!(cluster.runtime(), claim_of_lost_session_removed);
            keeper::revoke(cluster.connector(), session, deadline).await?;
            trail.clear();
        }
        cluster.0.current(deadline).await
    }

    /// Puts the claim at the end of the queue. Returns the claims ahead, or `None` to look again.
    async fn enter(
        &mut self,
        session: &Arc<Session>,
        deadline: Instant,
    ) -> Result<Option<Sight>, BackendError> {
        let Self { cluster, place, trail } = self;
        let connection = cluster.connector().connection(deadline).await?;
        trail.sending(session);
        // The put names this revision, or a newer one that another claim has learnt before it is sent.
        let guard_known = session.guard();
        let entering = || place.enter(session);
        let answer = cluster.send(&connection, session, place, entering, deadline).await;
        if let Err(BackendError::SessionLost { .. }) = answer {
            reached!(cluster.runtime(), put_found_lease_gone);
            // The cluster itself reports it: no put of this session can take effect any more.
            session.gone();
            trail.clear();
        }
        let entry = place.entry(answer?);
        trail.answered();
        Ok(match entry {
            Entry::New { position, ahead } => {
                trail.placed(position);
                Some(Sight::InQueue(ahead))
            }
            Entry::Known { position } => {
                reached!(cluster.runtime(), unanswered_put_found);
                trail.placed(position);
                None
            }
            Entry::Fenced { guard } => {
                reached!(cluster.runtime(), put_refused_by_guard);
                session.found_guard(guard, guard_known)?;
                None
            }
        })
    }

    /// Repeats until the place in the queue and the claims ahead are known.
    async fn find_place(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let session = self.session(deadline).await?;
        loop {
            let since = self.cluster.now();
            let sight = match self.trail.position() {
                None => self.enter(&session, deadline).await?,
                Some(position) => Some(self.look(position, deadline).await?),
            };
            match sight {
                None => {}
                Some(Sight::InQueue(ahead)) => return self.answer(&session, ahead, since),
                Some(Sight::Gone) => {
                    reached!(self.cluster.runtime(), key_gone_while_waiting);
                    // Most likely the lease ended. A keepalive shows it, and so does the put that follows.
                    self.trail.key_gone();
                    session.want();
                }
            }
        }
    }

    async fn look(&self, position: i64, deadline: Instant) -> Result<Sight, BackendError> {
        let look = self.place.look(position, !self.trail.is_admitted());
        let answer = self.cluster.txn(look, deadline).await?;
        Ok(self.place.sight(answer))
    }

    fn answer(&mut self, session: &Session, ahead: Ahead, since: Instant) -> Result<Answer, BackendError> {
        let left = session.left(since, self.cluster.now())?;
        let is_served = !ahead.is_full;
        if let Some(waiting) = self.place.refusal(&ahead).filter(|_| !self.trail.is_admitted()) {
            // The release that follows deletes the key. Until then it counts for the claims behind it.
            reached!(self.cluster.runtime(), key_behind_full_queue);
            return Ok(Answer::Full { waiting });
        }
        self.trail.admitted();
        self.trail.follows(ahead);
        let position = self.trail.position().unwrap_or_default().unsigned_abs();
        match FencingToken::new(position) {
            Some(token) if is_served => Ok(Answer::Granted { token, since, left }),
            Some(_) => Ok(Answer::Queued { position }),
            None => Err(BackendError::Refused { message: "a key of revision 0".to_owned(), passing: false }),
        }
    }

    /// Returns true if the claim's key is still the one that was granted.
    async fn is_in_place(&self, position: i64, deadline: Instant) -> Result<bool, BackendError> {
        let connector = self.cluster.connector();
        let connection = connector.connection(deadline).await?;
        let get =
            async { connection.kv().get(self.place.key(), Some(GetOptions::new().with_keys_only())).await };
        let found = connector.call(&connection, deadline, get).await?;
        Ok(found.kvs().first().is_some_and(|kv| kv.create_revision() == position))
    }

    /// Deletes the claim's key, and prevents puts in flight from creating it again.
    async fn send_release(
        &self,
        session: &Arc<Session>,
        deadline: Instant,
    ) -> Result<Released, BackendError> {
        let Self { cluster, place, trail } = self;
        let (answer, moves_guard) = match trail.position() {
            Some(position) if trail.is_answered() => {
                let connection = cluster.connector().connection(deadline).await?;
                let delete = || place.delete(position);
                (cluster.send(&connection, session, place, delete, deadline).await, false)
            }
            None if trail.is_answered() => return Ok(Released::NotOwner),
            _ => (cluster.txn(place.delete_for_good(session), deadline).await, true),
        };
        let answer = match answer {
            Err(BackendError::SessionLost { .. }) => {
                session.gone();
                return Ok(Released::NotOwner);
            }
            answer => answer?,
        };
        sometimes!(cluster.runtime(), release_fences_late_put, moves_guard);
        if moves_guard {
            session.raise_guard(answer.revision);
        }
        Ok(if answer.succeeded { Released::Done } else { Released::NotOwner })
    }
}

impl<R: Runtime> Acquisition for EtcdAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let runtime = self.cluster.connector().runtime().clone();
        let found = self.find_place(deadline);
        timeout_at(&runtime, deadline, found).await.unwrap_or(Err(BackendError::NoAnswer))
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Self { cluster, place, trail } = self;
        let (Some(session), Some(ahead)) = (trail.session(), trail.ahead()) else { return Ok(()) };
        let runtime = cluster.connector().runtime();
        let watch = cluster.watch(session, place, ahead, deadline);
        let over = pin!(session.over(runtime));
        let waiting = async {
            match select(pin!(watch), over).await {
                Either::Left((watched, _)) => watched,
                Either::Right((lost, _)) => {
                    reached!(runtime, session_over_while_waiting);
                    Err(lost)
                }
            }
        };
        timeout_at(runtime, deadline, waiting).await.unwrap_or(Ok(()))
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let (Some(session), Some(position)) = (self.trail.session(), self.trail.position()) else {
            return Ok(Renewal::NotOwner);
        };
        let runtime = self.cluster.connector().runtime();
        let both = try_join(session.renewed(runtime), self.is_in_place(position, deadline));
        let both = timeout_at(runtime, deadline, both).await;
        match both.unwrap_or(Err(BackendError::NoAnswer)) {
            Ok((since, true)) => {
                let left = session.left(since, self.cluster.now())?;
                Ok(Renewal::Extended { since, left })
            }
            Ok((_, false)) => {
                reached!(runtime, key_gone_lease_alive);
                Ok(Renewal::NotOwner)
            }
            Err(BackendError::SessionLost { .. }) => Ok(Renewal::NotOwner),
            Err(error) => Err(error),
        }
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Some(session) = self.trail.session().cloned() else { return Ok(Released::NotOwner) };
        let released = if session.check(self.cluster.now()).is_ok() {
            self.send_release(&session, deadline).await?
        } else {
            keeper::revoke(self.cluster.connector(), &session, deadline).await?;
            Released::NotOwner
        };
        self.trail.clear();
        Ok(released)
    }

    fn beside(&self) -> Vec<FencingToken> {
        let Some(Ahead { claims, readers, .. }) = self.trail.ahead() else { return Vec::new() };
        let claims = claims.iter().map(|(_, revision)| revision);
        claims
            .chain(readers)
            .rev()
            .filter_map(|revision| FencingToken::new(revision.unsigned_abs()))
            .collect()
    }

    fn needs_cleanup(&self) -> bool {
        self.trail.is_open()
    }
}

/// The result of a watch on the claims ahead.
enum Watched {
    /// One is gone, or the history that would show it has been compacted: look again.
    Changed,
    /// Nothing yet.
    Nothing,
}

impl<R: Runtime> Cluster<R> {
    fn connector(&self) -> &Connector<R> {
        self.0.connector()
    }

    fn runtime(&self) -> &R {
        self.connector().runtime()
    }

    fn now(&self) -> Instant {
        self.runtime().now()
    }

    async fn txn(&self, txn: Txn, deadline: Instant) -> Result<Reply, BackendError> {
        let connection = self.connector().connection(deadline).await?;
        let sent = async { connection.kv().txn(txn).await };
        let answer = self.connector().call(&connection, deadline, sent).await?;
        Ok(Reply::of(&answer))
    }

    /// Sends the transaction that `txn` makes for the claim at `place`; it may share a batch with others.
    async fn send(
        &self,
        connection: &Arc<Connection>,
        session: &Arc<Session>,
        place: &Arc<Place>,
        txn: impl Fn() -> Txn + Send,
        deadline: Instant,
    ) -> Result<Reply, BackendError> {
        let sent = self.0.batcher().send(self.runtime(), connection, session, place, txn);
        self.connector().judged(connection, deadline, sent).await
    }

    /// Waits for the end of a claim directly ahead. A mutex watches one key, and so does a reader. A
    /// semaphore watches the queue and ignores the other keys: with a watch for each claim ahead, waiters
    /// would have as many watches as there are permits.
    async fn watch(
        &self,
        session: &Session,
        place: &Place,
        ahead: &Ahead,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let connection = self.connector().connection(deadline).await?;
        let options =
            WatchOptions::new().with_start_revision(ahead.seen + 1).with_filters([WatchFilterType::NoPut]);
        let (key, options) = match ahead.claims.as_slice() {
            [(key, _)] => (key.as_slice(), options),
            _ => (place.queue().as_bytes(), options.with_prefix()),
        };
        let begin = async { connection.watch().watch(key, Some(options)).await };
        let confirm_by = self.now() + session.ttl() / 6;
        let begun = connection.unless_over(begin);
        let confirmed = self.connector().call(&connection, confirm_by.min(deadline), begun).await;
        // A member that does not confirm the watch takes no further requests, whatever other calls were
        // answered. The keepalives detect one that falls silent later.
        let had_time = confirm_by <= deadline;
        let mut stream = confirmed.inspect_err(|error| {
            if had_time {
                connection.judge(error)
            }
        })?;
        loop {
            match watched(&connection, &mut stream, ahead).await {
                Ok(Watched::Changed) => return Ok(()),
                Ok(Watched::Nothing) => {}
                Err(error) => {
                    connection.judge(&error);
                    return Err(error);
                }
            }
        }
    }
}

async fn watched(
    connection: &Connection,
    stream: &mut WatchStream,
    ahead: &Ahead,
) -> Result<Watched, BackendError> {
    let answer = connection.unless_over(stream.message()).await.map_err(meaning)?;
    let Some(answer) = answer else {
        return Err(BackendError::Disconnected { reason: "the watch has ended".to_owned() });
    };
    if answer.canceled() && answer.compact_revision() == 0 {
        // It would be cancelled again: back off.
        let message = format!("the watch was cancelled: {}", answer.cancel_reason());
        return Err(BackendError::Refused { message, passing: true });
    }
    let is_ahead = |key: &[u8]| ahead.claims.iter().any(|(claim, _)| claim == key);
    let ends = |event: &Event| {
        event.event_type() == EventType::Delete && event.kv().is_some_and(|kv| is_ahead(kv.key()))
    };
    let is_gone = answer.events().iter().any(ends);
    Ok(if is_gone || answer.canceled() { Watched::Changed } else { Watched::Nothing })
}

probes! {
    /// A claim's session was over: what the claim had under it is removed before it queues anew.
    reached claim_of_lost_session_removed;
    /// The cluster refused a claim's put, since the session's lease is gone.
    reached put_found_lease_gone;
    /// A put whose answer got lost had taken effect: the claim stands in the queue already.
    reached unanswered_put_found;
    /// A put was refused by the guard, which another claim of the session had moved.
    reached put_refused_by_guard;
    /// A claim looked for its key after a wait, and the key was gone.
    reached key_gone_while_waiting;
    /// A release moved the guard, so that a put still on its way can't create the key again.
    sometimes release_fences_late_put;
    /// A waiter's session ended while it waited.
    reached session_over_while_waiting;
    /// A renewal found the lease alive and the claim's key gone.
    reached key_gone_lease_alive;
    /// A claim found as many waiters ahead as may be there, and is refused.
    reached key_behind_full_queue;
}
