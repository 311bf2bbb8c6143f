//! Locks on an etcd cluster, through etcd's own client library.
//!
//! A client has one *session*: a lease at the cluster, kept alive by a task, shared by all its locks. A lock is a queue of
//! keys under such leases, served in the order of their create revisions; a waiter watches only the key right before its
//! own, so that a release wakes one and not all (the recipe of etcd's `client/v3/concurrency/mutex.go`). After the wait it
//! makes sure that its own key still stands: a lease that ended meanwhile took the key along, and whoever does not look
//! holds a lock that is another's (etcd issue 11456, found by Jepsen in etcd 3.4.3).
//!
//! Read `place.rs` for the queue, `session.rs` and `keeper.rs` for the session, `link.rs` and `stream.rs` for the way to the
//! cluster. [`EtcdLockService`] is the same with etcd's own Lock service, for comparison.
//!
//! # The fencing token
//!
//! It is the create revision of the holder's key, whether it was granted at once or after a wait, whether the answer arrived
//! or had to be asked for again. It grows from grant to grant of a key. For a claim is granted only while its key has the
//! lowest create revision of the queue; a key that enters later gets a revision above all that there have been; and one that
//! has left never comes back with its old revision. So if a grant of revision *n* followed one of *m > n*, the key of *n*
//! would have stood in the queue when *m* was granted, before it: a contradiction.
//!
//! Revisions are as durable as etcd's data: a majority keeps them. A cluster that is restored from a backup counts on
//! from the backup's revision and hands out tokens that were used before; restore it with
//! `etcdutl snapshot restore --bump-revision`, by more than was written since the backup.
//!
//! # What a lost session means
//!
//! A session is over when the cluster no longer knows its lease, or when no keepalive was answered for as long as it lives,
//! counted from the sending. Then it is over for good: its claims are lost, whatever the cluster says later; its lease
//! is revoked when the cluster is reached again; and the next acquire opens another.
//!
//! # What a member can do
//!
//! One member serves at a time, in the order in which they are given: give each process an order of its own to spread the
//! load. A member that can't be reached, that keeps silent or that knows no leader is left for the next one
//! ([`BackendError::Isolated`]). Watches move with the requests: the keepalives, which only the leader can answer, show every
//! third of a session that the member that serves the watches is in touch with it.

mod error;
mod keeper;
mod link;
mod lock_service;
mod options;
mod place;
mod session;
mod sessions;
mod stream;
mod trail;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{EventType, GetOptions, Txn, TxnResponse, WatchFilterType, WatchOptions, WatchStream};
use futures_util::future::{Either, select, try_join};

use self::link::{Connection, Link};
pub use self::lock_service::{EtcdLockService, LockServiceTrail};
pub use self::options::{EtcdOptions, EtcdOptionsError};
use self::place::{Ahead, Entry, Place, Sight};
use self::session::Session;
use self::sessions::Sessions;
pub use self::trail::Trail;
use crate::backend::{Answer, Backend, BackendError, Claim, Renewal};
use crate::handle::Released;
use crate::runtime::{Instant, Runtime, timeout_at};
use crate::token::FencingToken;

/// An etcd cluster. Clones share one session and one connection, which are opened by the first call and replaced after a
/// loss.
pub struct Etcd<R: Runtime>(Arc<Inner<R>>);

struct Inner<R> {
    sessions: Sessions<R>,
    session_ttl: Duration,
}

impl<R: Runtime> Etcd<R> {
    /// The cluster with the members at `endpoints`, each written `host:port`; one suffices, all are better. Nothing is sent
    /// yet.
    ///
    /// # Errors
    ///
    /// [`EtcdOptionsError`] names what can't be used.
    pub fn new(
        runtime: R,
        endpoints: &[impl AsRef<str>],
        options: &EtcdOptions,
    ) -> Result<Self, EtcdOptionsError> {
        let seconds = options.seconds()?;
        let link = Link::new(runtime, options::addresses(endpoints)?, options.user.as_ref());
        let session_ttl = Duration::from_secs(seconds.unsigned_abs());
        Ok(Self(Arc::new(Inner { sessions: Sessions::new(Arc::new(link), seconds), session_ttl })))
    }

    fn link(&self) -> &Link<R> {
        self.0.sessions.link()
    }

    fn now(&self) -> Instant {
        self.link().runtime().now()
    }

    async fn txn(&self, txn: Txn, patience: Instant) -> Result<TxnResponse, BackendError> {
        let by = self.link().connection(patience).await?;
        self.link().call(&by, patience, async { by.kv().txn(txn).await }).await
    }

    /// The session of the claim, or the client's if the claim has none. What the claim had under one that is over is
    /// cleared away first: it must not stand in its own way.
    async fn session(&self, trail: &mut Trail, patience: Instant) -> Result<Arc<Session>, BackendError> {
        if let Some(session) = trail.session() {
            if session.check(self.now()).is_ok() {
                return Ok(Arc::clone(session));
            }
            keeper::bury(self.link(), session, patience).await?;
            trail.clear();
        }
        self.0.sessions.current(patience).await
    }

    /// Puts the claim in line. Returns who stands before it, or `None` to look again.
    async fn enter(
        &self,
        place: &Place,
        session: &Arc<Session>,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Option<Sight>, BackendError> {
        let by = self.link().connection(patience).await?;
        trail.sending(session);
        let txn = place.enter(session);
        let answer = self.link().call(&by, patience, async { by.kv().txn(txn).await }).await;
        if let Err(BackendError::SessionLost(_)) = answer {
            // The cluster itself says so: no put of this session can take effect any more.
            session.gone();
            trail.clear();
        }
        let entry = place.entry(&answer?);
        trail.answered();
        Ok(match entry {
            Entry::New { position, ahead } => {
                trail.stands(position);
                Some(Sight::Standing(ahead))
            }
            Entry::Known { position } => {
                trail.stands(position);
                None
            }
            Entry::Fenced { guard } => {
                session.raise_guard(guard);
                None
            }
        })
    }

    /// Goes on until the place in the queue is known, and who stands before it.
    async fn stand(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        let session = self.session(trail, patience).await?;
        let place = Place::of(claim);
        loop {
            let since = self.now();
            let sight = match trail.position() {
                None => self.enter(&place, &session, trail, patience).await?,
                Some(position) => Some(place.sight(&self.txn(place.look(position), patience).await?)),
            };
            match sight {
                None => {}
                Some(Sight::Standing(ahead)) => return self.answer(&session, trail, ahead, since),
                Some(Sight::Gone) => {
                    // Most likely the lease ended. A keepalive tells; the put that follows does, too.
                    trail.fell();
                    session.want();
                }
            }
        }
    }

    fn answer(
        &self,
        session: &Session,
        trail: &mut Trail,
        ahead: Option<Ahead>,
        since: Instant,
    ) -> Result<Answer, BackendError> {
        let left = session.left(since, self.now())?;
        let is_first = ahead.is_none();
        trail.follows(ahead);
        let position = trail.position().unwrap_or_default().unsigned_abs();
        match FencingToken::new(position) {
            Some(token) if is_first => Ok(Answer::Granted { token, since, left }),
            Some(_) => Ok(Answer::Queued { position }),
            None => Err(BackendError::Refused { message: "a key of revision 0".to_owned(), passing: false }),
        }
    }

    /// Whether the claim's key stands where it was granted.
    async fn stands(&self, claim: &Claim, position: i64, patience: Instant) -> Result<bool, BackendError> {
        let by = self.link().connection(patience).await?;
        let place = Place::of(claim);
        let get = async { by.kv().get(place.key(), Some(GetOptions::new().with_keys_only())).await };
        let found = self.link().call(&by, patience, get).await?;
        Ok(found.kvs().first().is_some_and(|kv| kv.create_revision() == position))
    }

    /// Deletes what the claim has in the queue, and what it may still get there.
    async fn leave(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        session: &Session,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        let place = Place::of(claim);
        let (txn, moves_guard) = match trail.position() {
            Some(position) if trail.is_settled() => (place.leave(position), false),
            None if trail.is_settled() => return Ok(Released::NotOwner),
            _ => (place.leave_for_good(session), true),
        };
        let answer = match self.txn(txn, patience).await {
            Err(BackendError::SessionLost(_)) => {
                session.gone();
                return Ok(Released::NotOwner);
            }
            answer => answer?,
        };
        if moves_guard {
            session.raise_guard(place::revision(&answer));
        }
        Ok(if answer.succeeded() { Released::Done } else { Released::NotOwner })
    }
}

impl<R: Runtime> Backend for Etcd<R> {
    type Runtime = R;
    type Trail = Trail;

    const EXPIRES: bool = false;

    fn runtime(&self) -> &R {
        self.link().runtime()
    }

    fn ttl_max(&self) -> Option<Duration> {
        Some(self.0.session_ttl)
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        let standing = self.stand(claim, trail, patience);
        timeout_at(self.runtime(), patience, standing).await.unwrap_or(Err(BackendError::NoAnswer))
    }

    async fn turn(&self, _: &Claim, trail: &mut Trail, until: Instant) -> Result<(), BackendError> {
        let (Some(session), Some(ahead)) = (trail.session(), trail.ahead()) else { return Ok(()) };
        let watch = self.watch(session, ahead, until);
        let over = pin!(session.over(self.runtime()));
        let waiting = async {
            match select(pin!(watch), over).await {
                Either::Left((watched, _)) => watched,
                Either::Right((lost, _)) => Err(lost),
            }
        };
        timeout_at(self.runtime(), until, waiting).await.unwrap_or(Ok(()))
    }

    async fn renew(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        let (Some(session), Some(position)) = (trail.session(), trail.position()) else {
            return Ok(Renewal::NotOwner);
        };
        let both = try_join(session.renewed(self.runtime()), self.stands(claim, position, patience));
        let both = timeout_at(self.runtime(), patience, both).await;
        match both.unwrap_or(Err(BackendError::NoAnswer)) {
            Ok((since, true)) => {
                let left = session.left(since, self.now())?;
                Ok(Renewal::Extended { since, left })
            }
            Ok((_, false)) | Err(BackendError::SessionLost(_)) => Ok(Renewal::NotOwner),
            Err(error) => Err(error),
        }
    }

    async fn release(
        &self,
        claim: &Claim,
        trail: &mut Trail,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        let Some(session) = trail.session().cloned() else { return Ok(Released::NotOwner) };
        let released = if session.check(self.now()).is_ok() {
            self.leave(claim, trail, &session, patience).await?
        } else {
            keeper::bury(self.link(), &session, patience).await?;
            Released::NotOwner
        };
        trail.clear();
        Ok(released)
    }
}

/// What a watch on the one before came to.
enum Watched {
    /// It is gone, or the history in which that would be written has been compacted: worth asking.
    Changed,
    /// Nothing yet.
    Nothing,
}

impl<R: Runtime> Etcd<R> {
    /// Waits for the end of the key before, and of that alone.
    async fn watch(&self, session: &Session, ahead: &Ahead, until: Instant) -> Result<(), BackendError> {
        let by = self.link().connection(until).await?;
        let options =
            WatchOptions::new().with_start_revision(ahead.seen + 1).with_filters([WatchFilterType::NoPut]);
        let begin = async { by.watch().watch(ahead.key.as_slice(), Some(options)).await };
        // A member that does not even begin to answer is left; one that falls silent later, the keepalives find out.
        let patience = until.min(self.now() + session.ttl() / 6);
        let mut stream = self.link().call(&by, patience, by.unless_over(begin)).await?;
        loop {
            match self.watched(&by, &mut stream).await {
                Ok(Watched::Changed) => return Ok(()),
                Ok(Watched::Nothing) => {}
                Err(error) => {
                    by.judge(&error);
                    return Err(error);
                }
            }
        }
    }

    async fn watched(&self, by: &Connection, stream: &mut WatchStream) -> Result<Watched, BackendError> {
        let answer = by.unless_over(stream.message()).await.map_err(error::meaning)?;
        let Some(answer) = answer else {
            return Err(BackendError::Disconnected { reason: "the watch has ended".to_owned() });
        };
        if answer.canceled() && answer.compact_revision() == 0 {
            // It would be so again: the next question waits its time.
            let message = format!("the watch was cancelled: {}", answer.cancel_reason());
            return Err(BackendError::Refused { message, passing: true });
        }
        let is_gone = answer.events().iter().any(|event| event.event_type() == EventType::Delete);
        Ok(if is_gone || answer.canceled() { Watched::Changed } else { Watched::Nothing })
    }
}

impl<R: Runtime> Clone for Etcd<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> fmt::Debug for Etcd<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("endpoints", &self.link().addresses()).finish_non_exhaustive()
    }
}
