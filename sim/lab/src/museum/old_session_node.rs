//! B28: the old session's node is taken for our own. A client whose session is over by its own count opens
//! another, finds the node with its guid and trusts it, until the servers expire the old session.
//!
//! It is a separate implementation of the recipe, since the library's lock compares the node's session. So
//! does this one without the mistake.
//!
//! Source: CURATOR-604, CURATOR-696.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dlock::{
    Acquisition, Answer, AnyBackend, Backend, BackendError, Claim, FencingToken, Instant, Released, Renewal,
    Runtime,
};
use dlock_zookeeper::path::{ROOT, entry_number, entry_prefix, guid, queue};
use dlock_zookeeper::{Client, ClientOptions, CreateMode, Error, SessionState};
use sim::world::runtime::SimRuntime;

use crate::Workplace;

/// The time for which a waiter waits before it looks again.
const POLL: Duration = Duration::from_millis(50);

/// Makes the lock of a worker.
pub(super) fn old_session_node(place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
    lock(place, false)
}

/// Makes the same lock without the mistake.
pub(super) fn own_session_node(place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
    lock(place, true)
}

fn lock(place: &Workplace<'_>, is_checked: bool) -> Option<AnyBackend<SimRuntime>> {
    let options = ClientOptions::new(place.servers.clone(), place.lock.ttl);
    let runtime = place.runtime.clone();
    Some(AnyBackend::new(OldSessionNode { runtime, options, sessions: Arc::default(), is_checked }))
}

#[derive(Clone)]
struct OldSessionNode {
    /// True if a node of another session is left alone.
    is_checked: bool,
    runtime: SimRuntime,
    options: ClientOptions,
    sessions: Arc<Mutex<Sessions>>,
}

#[derive(Default)]
struct Sessions {
    opened: usize,
    latest: Option<Client<SimRuntime>>,
}

struct NodeAcquisition {
    lock: OldSessionNode,
    claim: Claim,
    guid: String,
    /// True if a creation was sent that no deletion has undone.
    sent: bool,
    /// The session in which the node was created.
    session: Option<i64>,
}

/// The place of a node in the queue.
struct Standing {
    token: FencingToken,
    is_first: bool,
}

impl OldSessionNode {
    /// Returns the session; another one if it is over by this client's own count. Each begins with another
    /// server.
    fn client(&self) -> Client<SimRuntime> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.runtime.now();
        let lives = |client: &&Client<SimRuntime>| {
            !matches!(client.state(), SessionState::Expired | SessionState::Closed)
                && client.valid_until().is_none_or(|until| now < until)
        };
        if let Some(client) = sessions.latest.as_ref().filter(lives) {
            return client.clone();
        }
        let mut options = self.options.clone();
        let servers = options.servers.len().max(1);
        options.servers.rotate_left(sessions.opened % servers);
        sessions.opened += 1;
        sessions.latest.insert(Client::new(self.runtime.clone(), options)).clone()
    }
}

impl Backend for OldSessionNode {
    type Runtime = SimRuntime;
    type Acquisition = NodeAcquisition;

    fn runtime(&self) -> &SimRuntime {
        &self.runtime
    }

    fn system(&self) -> &'static str {
        "zookeeper"
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(self.options.session_timeout)
    }

    fn open(&self, claim: Claim) -> NodeAcquisition {
        NodeAcquisition { lock: self.clone(), claim, guid: guid(&self.runtime), sent: false, session: None }
    }
}

impl NodeAcquisition {
    /// Returns the path of the node with our guid, if the queue has it. Compares its session only if
    /// `is_checked`.
    async fn find(&self, client: &Client<SimRuntime>, by: Instant) -> Result<Option<String>, Error> {
        let queue = queue(self.claim.key.name());
        client.sync(&queue, by).await?;
        let names = match client.children(&queue, by).await {
            Err(Error::NoNode { .. }) => return Ok(None),
            children => children?.names,
        };
        let prefix = entry_prefix(&self.guid);
        for name in names.iter().filter(|name| name.starts_with(&prefix)) {
            let path = format!("{queue}/{name}");
            if !self.lock.is_checked || is_of_session(client, &path, by).await? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    async fn create(&mut self, client: &Client<SimRuntime>, by: Instant) -> Result<String, Error> {
        let queue = queue(self.claim.key.name());
        for parent in [ROOT, &queue] {
            match client.create(parent, b"", CreateMode::PERSISTENT, by).await {
                Ok(_) | Err(Error::NodeExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.sent = true;
        self.session = client.session().map(|session| session.id);
        let path = format!("{queue}/{}", entry_prefix(&self.guid));
        let owner = self.claim.owner.as_str().as_bytes();
        Ok(client.create(&path, owner, CreateMode::EPHEMERAL_SEQUENTIAL, by).await?.path)
    }

    /// Gives up the place in the queue if its session is over and the mistake is not made: the next request
    /// begins at the end, with another node.
    fn look_at_session(&mut self, client: &Client<SimRuntime>) -> Result<(), Error> {
        let own = client.session().map(|session| session.id);
        if self.lock.is_checked && self.session.is_some() && self.session != own {
            *self = self.lock.open(self.claim.clone());
            return Err(Error::SessionExpired);
        }
        Ok(())
    }

    async fn stand(&mut self, client: &Client<SimRuntime>, by: Instant) -> Result<Option<Standing>, Error> {
        client.established(by).await?;
        self.look_at_session(client)?;
        let path = match self.find(client, by).await? {
            Some(path) => path,
            None => self.create(client, by).await?,
        };
        let names = client.children(&queue(self.claim.key.name()), by).await?.names;
        let own = entry_number(&path);
        let is_first = names.iter().filter_map(|name| entry_number(name)).min() == own;
        let stat = client.exists(&path, by).await?;
        let token = stat.and_then(|stat| FencingToken::new(stat.czxid.unsigned_abs()));
        Ok(token.map(|token| Standing { token, is_first }))
    }
}

impl Acquisition for NodeAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let client = self.lock.client();
        let (since, left) = (self.lock.runtime.now(), self.lock.options.session_timeout);
        // A quarter of a session, so that the client soon notices that its session is over.
        let by = deadline.min(since + left / 4);
        let standing = self.stand(&client, by).await.map_err(failure)?;
        Ok(match standing {
            Some(Standing { token, is_first: true }) => Answer::Granted { token, since, left },
            Some(Standing { token, .. }) => Answer::Queued { position: token.as_u64() },
            None => Answer::Taken { left: None },
        })
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let runtime = &self.lock.runtime;
        runtime.sleep_until(deadline.min(runtime.now() + POLL)).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let client = self.lock.client();
        let since = self.lock.runtime.now();
        let left = self.lock.options.session_timeout;
        let found = self.find(&client, deadline).await.map_err(failure)?;
        Ok(found.map_or(Renewal::NotOwner, |_| Renewal::Extended { since, left }))
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let client = self.lock.client();
        let deleted = match self.find(&client, deadline).await.map_err(failure)? {
            Some(path) => client.delete(&path, None, deadline).await,
            None => Err(Error::NoNode { path: String::new() }),
        };
        match deleted {
            Ok(()) => self.sent = false,
            Err(Error::NoNode { .. }) => {
                self.sent = false;
                return Ok(Released::NotOwner);
            }
            Err(error) => return Err(failure(error)),
        }
        Ok(Released::Done)
    }

    fn needs_cleanup(&self) -> bool {
        self.sent
    }
}

/// Returns true if the node is of the client's session.
async fn is_of_session(client: &Client<SimRuntime>, path: &str, by: Instant) -> Result<bool, Error> {
    let stat = client.exists(path, by).await?;
    Ok(client.session().is_some_and(|own| stat.is_some_and(|stat| stat.ephemeral_owner == own.id)))
}

fn failure(error: Error) -> BackendError {
    if error.is_session_over() {
        return BackendError::SessionLost { reported: true };
    }
    BackendError::Disconnected { reason: error.to_string() }
}
