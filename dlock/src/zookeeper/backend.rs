//! Locks on a ZooKeeper ensemble: the recipe.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join;

use super::client::Client;
use super::error::Error;
use super::options::ClientOptions;
use super::path;
use super::place::{Place, Standing};
use super::session::State;
use super::trail::Trail;
use super::wire::CreateMode;
use crate::backend::{Answer, Backend, BackendError, Claim, Renewal, SessionEnd, Trail as _};
use crate::handle::Released;
use crate::runtime::{Instant, Runtime, timeout_at};

/// The codes of a server that is overloaded, or has lost its leader.
///
/// Source: `KeeperException.Code`: CONNECTIONLOSS, OPERATIONTIMEOUT, REQUESTTIMEOUT, THROTTLEDOP.
const PASSING: [i32; 4] = [-4, -7, -122, -127];

/// A ZooKeeper ensemble. Clones share one session, and so do all locks on them: it is opened by the first call, and
/// replaced by a new one after it expired.
pub struct ZooKeeper<R: Runtime>(Arc<Inner<R>>);

struct Inner<R: Runtime> {
    runtime: R,
    options: ClientOptions,
    client: Mutex<Option<Client<R>>>,
}

impl<R: Runtime> ZooKeeper<R> {
    /// The ensemble of these servers, each written `host:port`. Nothing is sent yet.
    ///
    /// `session_timeout` bounds the TTL of locks, and is how long a holder that has crashed blocks others. The servers may
    /// settle on another, within bounds of their own (`minSessionTimeout`, `maxSessionTimeout`: 2 and 20 of their ticks):
    /// then leases are trusted for no longer than that.
    pub fn new<S: Into<String>>(
        runtime: R,
        servers: impl IntoIterator<Item = S>,
        session_timeout: Duration,
    ) -> Self {
        Self::with_options(runtime, ClientOptions::new(servers, session_timeout))
    }

    /// The same, with all that a session can be told.
    pub fn with_options(runtime: R, options: ClientOptions) -> Self {
        Self(Arc::new(Inner { runtime, options, client: Mutex::default() }))
    }

    /// The session that new claims use: the present one, or a new one after it ended.
    fn client(&self) -> Client<R> {
        let Inner { runtime, options, client } = &*self.0;
        let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |client: &Client<R>| matches!(client.state(), State::Expired | State::Closed);
        match client.as_ref().filter(|client| !over(client)) {
            Some(client) => client.clone(),
            None => client.insert(Client::new(runtime.clone(), options.clone())).clone(),
        }
    }

    /// Has new claims use another session than this one, which a server has said is over.
    fn retire(&self, over: &Client<R>) {
        let mut client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        if client.as_ref().is_some_and(|client| client.is_same(over)) {
            *client = None;
        }
    }

    /// Has `trail` forget what ended with its session, if the session is over.
    fn judge<T>(
        &self,
        result: Result<T, Error>,
        client: &Client<R>,
        trail: &mut Trail<R>,
    ) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_session_over) {
            self.retire(client);
            trail.gone();
        }
        result
    }

    /// Looks where the claim stands in line, and puts it there if it does not.
    async fn ask(&self, claim: &Claim, trail: &mut Trail<R>, patience: Instant) -> Result<Answer, Error> {
        let client = trail.place().map_or_else(|| self.client(), |place| place.client().clone());
        let answer = self.ask_by(&client, claim, trail, patience).await;
        self.judge(answer, &client, trail)
    }

    async fn ask_by(
        &self,
        client: &Client<R>,
        claim: &Claim,
        trail: &mut Trail<R>,
        patience: Instant,
    ) -> Result<Answer, Error> {
        client.established(patience).await?;
        // Before the request that proves the session alive: a sync or a create, which the leader has a hand in.
        let since = self.0.runtime.now();
        let known = match trail.place() {
            Some(place) => place.look(patience).await?,
            None => None,
        };
        let Standing { token, is_first, is_used_up } = match known {
            Some(standing) => standing,
            None => enter(client, claim, trail, patience).await?,
        };
        if is_used_up {
            return Err(Error::QueueUsedUp { path: path::queue(&claim.key) });
        }
        if !is_first {
            return Ok(Answer::Queued { position: token.as_u64() });
        }
        let left = timeout(client)?;
        Ok(Answer::Granted { token, since, left })
    }

    fn failure(&self, error: Error) -> BackendError {
        let servers = || self.0.options.servers.join(",");
        match error {
            Error::NotSent { reason } => BackendError::Unreachable { address: servers(), reason },
            Error::NoAnswer => BackendError::NoAnswer,
            Error::SessionExpired | Error::Closed => BackendError::SessionLost(SessionEnd::Unknown),
            Error::ConnectionLoss | Error::SessionMoved | Error::Protocol(_) => {
                BackendError::Disconnected { reason: error.to_string() }
            }
            error => BackendError::Refused { passing: may_pass(&error), message: error.to_string() },
        }
    }
}

impl<R: Runtime> Backend for ZooKeeper<R> {
    type Runtime = R;
    type Trail = Trail<R>;

    const EXPIRES: bool = false;

    fn runtime(&self) -> &R {
        &self.0.runtime
    }

    fn ttl_max(&self) -> Option<Duration> {
        Some(self.0.options.session_timeout)
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut Trail<R>,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        let had_place = trail.is_open();
        let answer = match self.ask(claim, trail, patience).await {
            // The session ended while nobody looked. No place was lost with it: the next one will do.
            Err(error) if error.is_session_over() && !had_place => self.ask(claim, trail, patience).await,
            answer => answer,
        };
        answer.map_err(|error| self.failure(error))
    }

    async fn turn(&self, _claim: &Claim, trail: &mut Trail<R>, until: Instant) -> Result<(), BackendError> {
        let Some(place) = trail.place() else { return Ok(()) };
        let client = place.client().clone();
        let wait = async {
            if let Some(watch) = place.watch_ahead(until).await? {
                // Whatever it says, also that it ended with its connection: who is ahead now must be asked.
                watch.await;
            }
            Ok(())
        };
        let waited = timeout_at(&self.0.runtime, until, wait).await.unwrap_or(Ok(()));
        self.judge(waited, &client, trail).map_err(|error| self.failure(error))
    }

    async fn renew(
        &self,
        _claim: &Claim,
        trail: &mut Trail<R>,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        let Some(place) = trail.place() else { return Ok(Renewal::NotOwner) };
        let client = place.client().clone();
        let proof = async {
            client.established(patience).await?;
            let since = self.0.runtime.now();
            let held = place.is_held(patience).await?;
            Ok((held, since, timeout(&client)?))
        };
        let proof = proof.await;
        match self.judge(proof, &client, trail) {
            Ok((true, since, left)) => Ok(Renewal::Extended { since, left }),
            Ok((false, ..)) => Ok(Renewal::NotOwner),
            Err(error) if error.is_session_over() => Ok(Renewal::NotOwner),
            Err(error) => Err(self.failure(error)),
        }
    }

    async fn release(
        &self,
        _claim: &Claim,
        trail: &mut Trail<R>,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        let Some(place) = trail.place() else { return Ok(Released::NotOwner) };
        let client = place.client().clone();
        let left = place.leave(patience).await;
        match self.judge(left, &client, trail) {
            Ok(deleted) => {
                trail.gone();
                Ok(if deleted { Released::Done } else { Released::NotOwner })
            }
            Err(error) if error.is_session_over() => Ok(Released::NotOwner),
            Err(error) => Err(self.failure(error)),
        }
    }
}

impl<R: Runtime> Clone for ZooKeeper<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Runtime> fmt::Debug for ZooKeeper<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeper").field("servers", &self.0.options.servers).finish_non_exhaustive()
    }
}

/// Puts the claim in line, in a queue that is made if there is none.
async fn enter<R: Runtime>(
    client: &Client<R>,
    claim: &Claim,
    trail: &mut Trail<R>,
    patience: Instant,
) -> Result<Standing, Error> {
    let queue = path::queue(&claim.key);
    match create(client, &queue, claim, trail, patience).await {
        Err(Error::NoNode { .. }) => {
            make(client, &queue, patience).await?;
            create(client, &queue, claim, trail, patience).await
        }
        standing => standing,
    }
}

async fn create<R: Runtime>(
    client: &Client<R>,
    queue: &str,
    claim: &Claim,
    trail: &mut Trail<R>,
    patience: Instant,
) -> Result<Standing, Error> {
    // A guid for each: an entry of an earlier session can't be taken for this one.
    let place = Place::new(client.clone(), queue, path::guid(client.runtime()));
    let place = trail.enter(place);
    let standing = place.create(&claim.owner, patience).await;
    if standing.as_ref().is_err_and(Error::is_refusal) && !place.is_known() {
        trail.gone();
    }
    standing
}

/// Makes a queue and the parent of all queues. They stay, a queue until it has counted to its end: ZooKeeper's counter
/// lives in it.
async fn make<R: Runtime>(client: &Client<R>, queue: &str, patience: Instant) -> Result<(), Error> {
    let make = |path| client.create(path, b"", CreateMode::PERSISTENT, patience);
    let (root, queue) = join(make(path::ROOT), make(queue)).await;
    for made in [root, queue] {
        match made {
            Ok(_) | Err(Error::NodeExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a request may succeed later that a server has refused.
fn may_pass(error: &Error) -> bool {
    match error {
        // Somebody else is at work on the same nodes.
        Error::NoNode { .. }
        | Error::NodeExists { .. }
        | Error::NotEmpty { .. }
        | Error::BadVersion { .. } => true,
        Error::Refused { code } => PASSING.contains(code),
        _ => false,
    }
}

/// What the servers have settled on.
fn timeout<R: Runtime>(client: &Client<R>) -> Result<Duration, Error> {
    client.session().map(|session| session.timeout).ok_or(Error::SessionExpired)
}
