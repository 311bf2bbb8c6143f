//! The client of a session.

use std::fmt;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, timeout_at};
use tokio::sync::{mpsc, oneshot};

use super::driver::Driver;
use super::error::Error;
use super::options::ClientOptions;
use super::order::{Answer, Order, Withdrawal};
use super::session::{Session, SessionState, Shared};
use super::watches::Watch;
use super::wire::{Access, CreateMode, Reply, Request, Stat, WireError};

/// One ZooKeeper session. Clones share it; when the last one is dropped, the session is closed.
///
/// Requests are sent and executed in the order in which they are made. Each waits until `deadline` for a
/// connection and an answer. A request whose future is dropped before it was sent is never sent.
pub struct Client<R: Runtime> {
    shared: Arc<Shared<R>>,
    orders: mpsc::UnboundedSender<Order>,
}

/// A created node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its path, with the digits that the server appends to a sequential node.
    pub path: String,
    /// Its stat; `czxid` grows with each creation.
    pub stat: Stat,
}

/// The children of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Children {
    /// Their names without the parent's path, in no particular order.
    pub names: Vec<String>,
    /// The parent's stat.
    pub stat: Stat,
}

impl<R: Runtime> Client<R> {
    /// Opens a session: tries the servers one by one, for as long as a client exists.
    pub fn new(runtime: R, options: ClientOptions) -> Self {
        let shared = Arc::new(Shared::new(runtime.clone(), options));
        let (orders, receiver) = mpsc::unbounded_channel();
        runtime.spawn(Driver::new(Arc::clone(&shared), receiver).run());
        Self { shared, orders }
    }

    /// Returns the state of the session.
    pub fn state(&self) -> SessionState {
        self.shared.state()
    }

    /// Waits until the state differs from `known` and returns it. Short-lived states may be missed.
    pub async fn state_after(&self, known: SessionState) -> SessionState {
        self.shared.state_after(known).await
    }

    /// Returns the session once a server has granted it, even after it is over.
    pub fn session(&self) -> Option<Session> {
        self.shared.session()
    }

    /// Returns the time until which the session is known to live at the servers: the negotiated timeout,
    /// counted from the sending of the last acknowledged message. It grows with every answer, also to pings.
    /// `None` before the first.
    ///
    /// It does not reflect a session that a server has ended: see [`Client::state`].
    pub fn valid_until(&self) -> Option<Instant> {
        self.shared.valid_until()
    }

    /// Returns the runtime of the client.
    pub fn runtime(&self) -> &R {
        &self.shared.runtime
    }

    /// Waits for the first connection and returns the session.
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] if no connection is open by `deadline`; [`Error::SessionExpired`] or
    /// [`Error::Closed`].
    pub async fn established(&self, deadline: Instant) -> Result<Session, Error> {
        let wait = async {
            let mut state = self.state();
            while state == SessionState::Disconnected {
                state = self.state_after(state).await;
            }
            state
        };
        match timeout_at(self.runtime(), deadline, wait).await {
            Ok(SessionState::Connected) => self.session().ok_or_else(|| self.shared.not_sent()),
            _ => Err(self.shared.not_sent()),
        }
    }

    /// Creates a node, for the user of [`ClientOptions::login`] alone if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`] without a parent, [`Error::NodeExists`], [`Error::NoChildrenForEphemerals`],
    /// [`Error::BadArguments`]; and those of every request: see [`Error`].
    pub async fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        deadline: Instant,
    ) -> Result<Created, Error> {
        let access = match self.shared.options.login {
            Some(_) => Access::Creator,
            None => Access::Everybody,
        };
        let (path, data) = (path.to_owned(), data.to_vec());
        let request = Request::Create { path, data, mode, access, with_stat: true };
        match self.ask(request, deadline).await?.reply {
            Some(Reply::Created { path, stat }) => Ok(Created { path, stat }),
            _ => Err(unexpected()),
        }
    }

    /// Deletes a node; with a version, only if its data has this version.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], [`Error::BadVersion`], [`Error::NotEmpty`], and those of every request.
    pub async fn delete(&self, path: &str, version: Option<i32>, deadline: Instant) -> Result<(), Error> {
        let request = Request::Delete { path: path.to_owned(), version: version.unwrap_or(-1) };
        self.ask(request, deadline).await.map(drop)
    }

    /// Returns the stat of a node, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The errors of every request.
    pub async fn exists(&self, path: &str, deadline: Instant) -> Result<Option<Stat>, Error> {
        let request = Request::Exists { path: path.to_owned(), watch: false };
        stat(self.ask(request, deadline).await?.reply)
    }

    /// As [`Client::exists`], and sets a watch for the node's creation, deletion and change of data.
    ///
    /// # Errors
    ///
    /// The errors of every request.
    pub async fn exists_watched(
        &self,
        path: &str,
        deadline: Instant,
    ) -> Result<(Option<Stat>, Watch), Error> {
        let request = Request::Exists { path: path.to_owned(), watch: true };
        let (reply, watch) = self.ask_watched(request, deadline).await?;
        Ok((stat(reply)?, watch))
    }

    /// Returns a node's data and stat.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and those of every request.
    pub async fn data(&self, path: &str, deadline: Instant) -> Result<(Vec<u8>, Stat), Error> {
        let request = Request::Data { path: path.to_owned(), watch: false };
        data(self.ask(request, deadline).await?.reply)
    }

    /// As [`Client::data`], and sets a watch for the node's deletion and change of data. It sets none if the
    /// node does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and those of every request.
    pub async fn data_watched(&self, path: &str, deadline: Instant) -> Result<(Vec<u8>, Stat, Watch), Error> {
        let request = Request::Data { path: path.to_owned(), watch: true };
        let (reply, watch) = self.ask_watched(request, deadline).await?;
        let (data, stat) = data(reply)?;
        Ok((data, stat, watch))
    }

    /// Sets a node's data; with a version, only if the data has this version.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], [`Error::BadVersion`], and those of every request.
    pub async fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
        deadline: Instant,
    ) -> Result<Stat, Error> {
        let version = version.unwrap_or(-1);
        let request = Request::SetData { path: path.to_owned(), data: data.to_vec(), version };
        stat(self.ask(request, deadline).await?.reply)?.ok_or_else(unexpected)
    }

    /// Returns a node's children.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and those of every request.
    pub async fn children(&self, path: &str, deadline: Instant) -> Result<Children, Error> {
        let request = Request::Children { path: path.to_owned(), watch: false, with_stat: true };
        children(self.ask(request, deadline).await?.reply)
    }

    /// As [`Client::children`], and sets a watch for the creation and deletion of children, and the node's
    /// deletion.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and those of every request.
    pub async fn children_watched(&self, path: &str, deadline: Instant) -> Result<(Children, Watch), Error> {
        let request = Request::Children { path: path.to_owned(), watch: true, with_stat: true };
        let (reply, watch) = self.ask_watched(request, deadline).await?;
        Ok((children(reply)?, watch))
    }

    /// Makes the server catch up with the leader, so that a later read sees all writes made before this call.
    ///
    /// # Errors
    ///
    /// The errors of every request.
    pub async fn sync(&self, path: &str, deadline: Instant) -> Result<(), Error> {
        self.ask(Request::Sync { path: path.to_owned() }, deadline).await.map(drop)
    }

    /// Ends the session: its ephemeral nodes are deleted. Earlier requests are executed first.
    ///
    /// # Errors
    ///
    /// The errors of every request. After [`Error::NotSent`] the session continues; after any other error it
    /// is over for this client, and at the servers after its timeout at the latest.
    pub async fn close(&self, deadline: Instant) -> Result<(), Error> {
        self.ask(Request::Close, deadline).await.map(drop)
    }

    /// Returns whether both are clients of the same session.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    async fn ask_watched(
        &self,
        request: Request,
        deadline: Instant,
    ) -> Result<(Option<Reply>, Watch), Error> {
        let answer = self.ask(request, deadline).await?;
        Ok((answer.reply, answer.watch.ok_or_else(unexpected)?))
    }

    async fn ask(&self, request: Request, deadline: Instant) -> Result<Answer, Error> {
        let (reply, answer) = oneshot::channel();
        let withdrawal = Withdrawal::default();
        let ticket = withdrawal.ticket();
        if self.orders.send(Order { request, ticket, reply }).is_err() {
            return Err(self.shared.not_sent());
        }
        match timeout_at(self.runtime(), deadline, answer).await {
            Ok(Ok(result)) => result,
            // The driver has ended.
            Ok(Err(_)) if withdrawal.withdraw() => Err(self.shared.not_sent()),
            Ok(Err(_)) => Err(Error::ConnectionLoss),
            Err(_) if withdrawal.withdraw() => Err(self.shared.not_sent()),
            Err(_) => Err(Error::NoAnswer),
        }
    }
}

impl<R: Runtime> Clone for Client<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), orders: self.orders.clone() }
    }
}

impl<R: Runtime> fmt::Debug for Client<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Client");
        fields.field("servers", &self.shared.options.servers).field("state", &self.state());
        fields.finish_non_exhaustive()
    }
}

fn stat(reply: Option<Reply>) -> Result<Option<Stat>, Error> {
    match reply {
        Some(Reply::Stat(stat)) => Ok(Some(stat)),
        None => Ok(None),
        Some(_) => Err(unexpected()),
    }
}

fn data(reply: Option<Reply>) -> Result<(Vec<u8>, Stat), Error> {
    match reply {
        Some(Reply::Data { data, stat }) => Ok((data, stat)),
        _ => Err(unexpected()),
    }
}

fn children(reply: Option<Reply>) -> Result<Children, Error> {
    match reply {
        Some(Reply::Children { names, stat: Some(stat) }) => Ok(Children { names, stat }),
        _ => Err(unexpected()),
    }
}

/// Returns the error for a reply of the wrong kind. Replies are read according to their request, so it can't
/// happen; if it does, it must not panic.
fn unexpected() -> Error {
    Error::Protocol(WireError::Truncated)
}
