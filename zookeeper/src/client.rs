//! A session, as its users see it.

use std::fmt;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, timeout_at};
use tokio::sync::{mpsc, oneshot};

use super::driver::Driver;
use super::error::Error;
use super::options::ClientOptions;
use super::order::{Answer, Order, Withdrawal};
use super::session::{Session, Shared, State};
use super::watches::Watch;
use super::wire::{CreateMode, Reply, Request, Stat, WireError};

/// One ZooKeeper session. Clones share it; when the last one is dropped, the session is closed.
///
/// Requests go out in the order in which they are made and are executed in that order. Each waits until
/// `deadline` for a connection and an answer. A request whose future is dropped before it was sent is never
/// sent.
pub struct Client<R: Runtime> {
    shared: Arc<Shared<R>>,
    orders: mpsc::UnboundedSender<Order>,
}

/// A node that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its path, with the digits that the server has appended to a sequential one.
    pub path: String,
    /// Its stat; `czxid` grows from creation to creation.
    pub stat: Stat,
}

/// The children of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Children {
    /// Their names without the parent's path, in no order.
    pub names: Vec<String>,
    /// The parent's stat.
    pub stat: Stat,
}

impl<R: Runtime> Client<R> {
    /// Begins a session: the servers are tried one by one, for as long as a client lives.
    pub fn new(runtime: R, options: ClientOptions) -> Self {
        let shared = Arc::new(Shared::new(runtime.clone(), options));
        let (orders, receiver) = mpsc::unbounded_channel();
        runtime.spawn(Driver::new(Arc::clone(&shared), receiver).run());
        Self { shared, orders }
    }

    /// How the session stands.
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// Waits until the state is another than `known`, and returns it. States that passed quickly may be
    /// missed.
    pub async fn state_after(&self, known: State) -> State {
        self.shared.state_after(known).await
    }

    /// The session, once a server has granted it. It stays known when it is over.
    pub fn session(&self) -> Option<Session> {
        self.shared.session()
    }

    /// Until when the session may be trusted to live at the servers: the negotiated timeout, counted from the
    /// sending of the last message that was answered. It grows with every answer, pings' included. `None`
    /// before the first.
    ///
    /// It says nothing when the session is over by a server's word: see [`Client::state`].
    pub fn valid_until(&self) -> Option<Instant> {
        self.shared.valid_until()
    }

    /// The outside world, as the client sees it.
    pub fn runtime(&self) -> &R {
        &self.shared.runtime
    }

    /// Waits for the first connection, and returns the session.
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] if there is none by `deadline`; [`Error::SessionExpired`] or [`Error::Closed`].
    pub async fn established(&self, deadline: Instant) -> Result<Session, Error> {
        let wait = async {
            let mut state = self.state();
            while state == State::Disconnected {
                state = self.state_after(state).await;
            }
            state
        };
        match timeout_at(self.runtime(), deadline, wait).await {
            Ok(State::Connected) => self.session().ok_or_else(|| self.shared.not_sent()),
            _ => Err(self.shared.not_sent()),
        }
    }

    /// Creates a node.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`] without a parent, [`Error::NodeExists`], [`Error::NoChildrenForEphemerals`],
    /// [`Error::BadArguments`]; and what every request may meet: see [`Error`].
    pub async fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        deadline: Instant,
    ) -> Result<Created, Error> {
        let request = Request::Create { path: path.to_owned(), data: data.to_vec(), mode, with_stat: true };
        match self.ask(request, deadline).await?.reply {
            Some(Reply::Created { path, stat }) => Ok(Created { path, stat }),
            _ => Err(unexpected()),
        }
    }

    /// Deletes a node; with a version, only if its data still has that one.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], [`Error::BadVersion`], [`Error::NotEmpty`], and the general ones.
    pub async fn delete(&self, path: &str, version: Option<i32>, deadline: Instant) -> Result<(), Error> {
        let request = Request::Delete { path: path.to_owned(), version: version.unwrap_or(-1) };
        self.ask(request, deadline).await.map(drop)
    }

    /// The stat of a node, or `None` if there is no such node.
    ///
    /// # Errors
    ///
    /// The general ones.
    pub async fn exists(&self, path: &str, deadline: Instant) -> Result<Option<Stat>, Error> {
        let request = Request::Exists { path: path.to_owned(), watch: false };
        stat(self.ask(request, deadline).await?.reply)
    }

    /// The same, and a watch for when the node comes, goes or gets other data.
    ///
    /// # Errors
    ///
    /// The general ones.
    pub async fn exists_watched(
        &self,
        path: &str,
        deadline: Instant,
    ) -> Result<(Option<Stat>, Watch), Error> {
        let request = Request::Exists { path: path.to_owned(), watch: true };
        let (reply, watch) = self.ask_watched(request, deadline).await?;
        Ok((stat(reply)?, watch))
    }

    /// A node's data and stat.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and the general ones.
    pub async fn data(&self, path: &str, deadline: Instant) -> Result<(Vec<u8>, Stat), Error> {
        let request = Request::Data { path: path.to_owned(), watch: false };
        data(self.ask(request, deadline).await?.reply)
    }

    /// The same, and a watch for when the node goes or gets other data. Nothing is watched if there is no
    /// node.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and the general ones.
    pub async fn data_watched(&self, path: &str, deadline: Instant) -> Result<(Vec<u8>, Stat, Watch), Error> {
        let request = Request::Data { path: path.to_owned(), watch: true };
        let (reply, watch) = self.ask_watched(request, deadline).await?;
        let (data, stat) = data(reply)?;
        Ok((data, stat, watch))
    }

    /// Sets a node's data; with a version, only if it still has that one.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], [`Error::BadVersion`], and the general ones.
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

    /// A node's children.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and the general ones.
    pub async fn children(&self, path: &str, deadline: Instant) -> Result<Children, Error> {
        let request = Request::Children { path: path.to_owned(), watch: false, with_stat: true };
        children(self.ask(request, deadline).await?.reply)
    }

    /// The same, and a watch for when a child comes or goes, or the node goes.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], and the general ones.
    pub async fn children_watched(&self, path: &str, deadline: Instant) -> Result<(Children, Watch), Error> {
        let request = Request::Children { path: path.to_owned(), watch: true, with_stat: true };
        let (reply, watch) = self.ask_watched(request, deadline).await?;
        Ok((children(reply)?, watch))
    }

    /// Has the server catch up with the leader, so that a read that follows sees all that was written before
    /// this.
    ///
    /// # Errors
    ///
    /// The general ones.
    pub async fn sync(&self, path: &str, deadline: Instant) -> Result<(), Error> {
        self.ask(Request::Sync { path: path.to_owned() }, deadline).await.map(drop)
    }

    /// Ends the session: its ephemeral nodes are deleted. What was asked before is executed first.
    ///
    /// # Errors
    ///
    /// The general ones. After [`Error::NotSent`] the session goes on, after all others it is over for this
    /// client, and at the servers when its timeout has passed at the latest.
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

/// A reply is read by the operation that was asked for, so this can't happen; and if it does, it is no panic.
fn unexpected() -> Error {
    Error::Protocol(WireError::Truncated)
}
