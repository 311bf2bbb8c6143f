//! Locks by etcd's own Lock service (`v3lockpb.Lock`), to compare with.

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{GetOptions, LockOptions};
use futures_util::future::{Either, select, try_join};
use tokio::sync::oneshot;

use super::keeper::{self, Kept};
use super::link::Link;
use super::options::EtcdOptions;
use super::place;
use super::session::Session;
use crate::backend::{Acquisition, Answer, Backend, Claim, Released, Renewal};
use crate::error::BackendError;
use crate::runtime::{Instant, Runtime, timeout_at};
use crate::setup::{self, SetupError};
use crate::token::FencingToken;

/// An etcd cluster whose Lock service keeps the queue: one call that returns when the lock is the caller's.
///
/// It is here to be compared with [`Etcd`](super::Etcd); take that one for work. What is different:
///
/// - The service names a waiter after its lease, so that two claims under one lease would *both* be told that they hold the
///   lock. Each claim therefore has a session of its own, which is one more round trip to acquire, and one stream of
///   keepalives for each. Its end is simple, though: the lease is revoked, and with it goes the key, and whatever
///   was sent for it and not answered.
/// - After the wait the claim is not looked at again. etcd 3.4 answers a waiter whose lease has ended meanwhile as if it held
///   the lock (etcd issue 11456); only the session's validity, by this client's clock, stands against that.
/// - Whether the lock is another's, or the member silent, can't be told from a call that has not returned. Half of the
///   patience of each acquire passes before the claim's key is looked for, and the place told.
///
/// The token is the create revision of the claim's key here, too: read when it is first looked for, be that
/// while it waits or after the service has answered, since the revision in the service's answers is the key's own for those
/// who did not wait and a later one for those who did.
pub struct EtcdLockService<R: Runtime>(Arc<Inner<R>>);

struct Inner<R> {
    link: Arc<Link<R>>,
    seconds: i64,
}

/// One attempt to hold one lease by the Lock service.
pub struct LockServiceAcquisition<R: Runtime> {
    service: EtcdLockService<R>,
    claim: Claim,
    stake: Option<Stake>,
}

struct Stake {
    kept: Kept,
    call: Call,
    /// The claim's key, once the service or a look has shown it.
    position: Option<i64>,
}

/// The call of the service.
enum Call {
    Idle,
    /// A task waits for it, until this is dropped.
    UnderWay(oneshot::Receiver<Result<(), BackendError>>),
    /// The service has said that the lock is the claim's.
    Held,
    /// It failed. The service may be about to take the claim's key away, so another call needs another session.
    Failed,
}

impl<R: Runtime> EtcdLockService<R> {
    /// As [`Etcd::new`](super::Etcd::new).
    ///
    /// # Errors
    ///
    /// [`SetupError`] names what can't be used.
    pub fn new(runtime: R, endpoints: &[impl AsRef<str>], options: EtcdOptions) -> Result<Self, SetupError> {
        let seconds = options.seconds()?;
        let link = Link::new(runtime, setup::check_addresses(endpoints)?, options.user.as_ref());
        Ok(Self(Arc::new(Inner { link: Arc::new(link), seconds })))
    }

    fn now(&self) -> Instant {
        self.runtime().now()
    }

    /// The claim's stake under a session that is not over.
    async fn stake<'a>(
        &self,
        stake: &'a mut Option<Stake>,
        patience: Instant,
    ) -> Result<&'a mut Stake, BackendError> {
        let now = self.now();
        if let Some(over) = stake.as_ref().filter(|stake| stake.is_over(now)) {
            keeper::bury(&self.0.link, &over.kept.session, patience).await?;
            *stake = None;
        }
        let kept = match stake.take() {
            Some(present) => return Ok(stake.insert(present)),
            None => keeper::open(&self.0.link, self.0.seconds, patience).await?,
        };
        Ok(stake.insert(Stake { kept, call: Call::Idle, position: None }))
    }

    async fn stand(
        &self,
        claim: &Claim,
        stake: &mut Option<Stake>,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        let stake = self.stake(stake, patience).await?;
        let since = self.now();
        if let Call::Idle = stake.call {
            stake.call = Call::UnderWay(self.begin(claim, &stake.kept.session, patience).await?);
        }
        let half = since + patience.saturating_since(since) / 2;
        timeout_at(self.runtime(), half, stake.answered()).await.unwrap_or(Ok(()))?;
        let position = self.position(claim, stake, patience).await?;
        let left = stake.kept.session.left(since, self.now())?;
        match (&stake.call, FencingToken::new(position)) {
            (Call::Held, Some(token)) => Ok(Answer::Granted { token, since, left }),
            _ => Ok(Answer::Queued { position }),
        }
    }

    /// Calls the service, in a task of its own: a call that is dropped would lose its place.
    async fn begin(
        &self,
        claim: &Claim,
        session: &Arc<Session>,
        patience: Instant,
    ) -> Result<oneshot::Receiver<Result<(), BackendError>>, BackendError> {
        let by = self.0.link.connection(patience).await?;
        let options = LockOptions::new().with_lease(session.lease());
        let (mut answer, answered) = oneshot::channel();
        let name = place::queue_name(claim);
        self.runtime().spawn(async move {
            let mut client = by.lock();
            let call = pin!(by.unless_over(client.lock(name, Some(options))));
            let result = match select(call, pin!(answer.closed())).await {
                Either::Left((result, _)) => result.map(drop).map_err(super::error::meaning),
                Either::Right(_) => return,
            };
            if let Err(error) = &result {
                by.judge(error);
            }
            // Nobody waits any more.
            let _ = answer.send(result);
        });
        Ok(answered)
    }

    /// The create revision of the claim's key, which is looked for once.
    async fn position(
        &self,
        claim: &Claim,
        stake: &mut Stake,
        patience: Instant,
    ) -> Result<u64, BackendError> {
        if stake.position.is_none() {
            stake.position = self.look(claim, &stake.kept.session, patience).await?;
        }
        match (stake.position, &stake.call) {
            (Some(position), _) => Ok(position.unsigned_abs()),
            // Told that it holds the lock, and there is no key: its lease has ended.
            (None, Call::Held) => Err(lost(&stake.kept.session)),
            (None, _) => Err(BackendError::NoAnswer),
        }
    }

    async fn look(
        &self,
        claim: &Claim,
        session: &Session,
        patience: Instant,
    ) -> Result<Option<i64>, BackendError> {
        let by = self.0.link.connection(patience).await?;
        let key = format!("{}/{:x}", place::queue_name(claim), session.lease());
        let get = async { by.kv().get(key, Some(GetOptions::new().with_keys_only())).await };
        let found = self.0.link.call(&by, patience, get).await?;
        Ok(found.kvs().first().map(etcd_client::KeyValue::create_revision))
    }
}

impl<R: Runtime> Backend for EtcdLockService<R> {
    type Runtime = R;
    type Acquisition = LockServiceAcquisition<R>;

    fn runtime(&self) -> &R {
        self.0.link.runtime()
    }

    fn system(&self) -> &'static str {
        "etcd"
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.0.seconds.unsigned_abs()))
    }

    fn open(&self, claim: Claim) -> LockServiceAcquisition<R> {
        LockServiceAcquisition { service: self.clone(), claim, stake: None }
    }
}

impl<R: Runtime> Acquisition for LockServiceAcquisition<R> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { service, claim, stake } = self;
        let standing = service.stand(claim, stake, deadline);
        timeout_at(service.runtime(), deadline, standing).await.unwrap_or(Err(BackendError::NoAnswer))
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let runtime = self.service.runtime();
        let Some(stake) = &mut self.stake else { return Ok(()) };
        let session = Arc::clone(&stake.kept.session);
        let over = pin!(session.over(runtime));
        let waiting = async {
            match select(pin!(stake.answered()), over).await {
                Either::Left((answer, _)) => answer,
                Either::Right((lost, _)) => Err(lost),
            }
        };
        timeout_at(runtime, deadline, waiting).await.unwrap_or(Ok(()))
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let Self { service, claim, stake } = self;
        let Some(stake) = stake else { return Ok(Renewal::NotOwner) };
        let session = &stake.kept.session;
        let both = try_join(session.renewed(service.runtime()), service.look(claim, session, deadline));
        let both = timeout_at(service.runtime(), deadline, both).await;
        match both.unwrap_or(Err(BackendError::NoAnswer)) {
            Ok((since, found)) if found.is_some() && found == stake.position => {
                let left = session.left(since, service.now())?;
                Ok(Renewal::Extended { since, left })
            }
            Ok(_) | Err(BackendError::SessionLost { .. }) => Ok(Renewal::NotOwner),
            Err(error) => Err(error),
        }
    }

    /// Revokes the claim's lease: the key goes with it, and no call that is still on its way can bring it back.
    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let Self { service, stake, .. } = self;
        let Some(standing) = stake else { return Ok(Released::NotOwner) };
        let session = &standing.kept.session;
        let was_held = session.check(service.now()).is_ok() && matches!(standing.call, Call::Held);
        let was_there = keeper::bury(&service.0.link, session, deadline).await?;
        *stake = None;
        Ok(if was_held && was_there { Released::Done } else { Released::NotOwner })
    }

    fn may_be_held(&self) -> bool {
        self.stake.is_some()
    }
}

impl Stake {
    fn is_over(&self, now: Instant) -> bool {
        matches!(self.call, Call::Failed) || self.kept.session.check(now).is_err()
    }

    /// Waits until the service has answered.
    async fn answered(&mut self) -> Result<(), BackendError> {
        let answer = match &mut self.call {
            Call::Held => return Ok(()),
            Call::UnderWay(answer) => answer.await,
            Call::Idle | Call::Failed => pending().await,
        };
        self.call = Call::Failed;
        answer.unwrap_or(Err(BackendError::NoAnswer))?;
        self.call = Call::Held;
        Ok(())
    }
}

fn lost(session: &Session) -> BackendError {
    session.end(true);
    BackendError::SessionLost { reported: true }
}

impl<R: Runtime> Clone for EtcdLockService<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> fmt::Debug for EtcdLockService<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLockService").field("endpoints", &self.0.link.addresses()).finish_non_exhaustive()
    }
}
