//! The task behind a session: it connects, serves the connection until it is lost, and reconnects.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, closest, probes, reached, sometimes, timeout_at};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::connection::{Connection, Pending, Wake};
use super::error::Error;
use super::order::{Answer, Order};
use super::session::{Session, SessionState, Shared};
use super::wire::{
    ConnectRequest, ConnectResponse, Login, Op, PASSWORD_BYTES, Reader, Reply, ReplyHeader, Request,
    WatcherEvent, WireError, code, xid,
};

pub(super) struct Driver<R: Runtime> {
    shared: Arc<Shared<R>>,
    orders: UnboundedReceiver<Order>,
    /// Requests made without a connection, oldest first.
    waiting: VecDeque<Order>,
    session: Option<(Session, [u8; PASSWORD_BYTES])>,
    last_zxid: i64,
    /// Counts the attempts to connect; modulo the number of servers it is the next server's index.
    attempts: usize,
    /// Attempts since the last connection.
    failures: usize,
}

/// How a connection, or an attempt to connect, ended.
enum End {
    /// Reconnect, perhaps to another server.
    Lost(String),
    /// The server reports that the session is over.
    Expired,
    /// The session is closed, or about to be.
    Closed,
}

impl<R: Runtime> Driver<R> {
    pub(super) fn new(shared: Arc<Shared<R>>, orders: UnboundedReceiver<Order>) -> Self {
        let mut random = [0; 2];
        shared.runtime.fill_random(&mut random);
        let attempts = usize::from(u16::from_le_bytes(random));
        let waiting = VecDeque::new();
        Self { shared, orders, waiting, session: None, last_zxid: 0, attempts, failures: 0 }
    }

    /// Runs until the session is over or no client is left.
    pub(super) async fn run(mut self) {
        let end = loop {
            let end = match self.connect().await {
                Ok(connection) => self.serve(connection).await,
                Err(end) => end,
            };
            match end {
                End::Lost(reason) => self.shared.failed(reason),
                End::Expired => break SessionState::Expired,
                End::Closed => break SessionState::Closed,
            }
            if !self.keep_waiting() {
                break SessionState::Closed;
            }
            self.back_off().await;
        };
        self.shared.set_state(end);
    }

    /// Connects to the next server and resumes the session there, or opens it.
    async fn connect(&mut self) -> Result<Connection<R>, End> {
        let shared = Arc::clone(&self.shared);
        let servers = &shared.options.servers;
        let Some(address) = servers.get(self.attempts % servers.len().max(1)) else {
            return Err(End::Lost("no server was named: fill ClientOptions::servers".to_owned()));
        };
        self.attempts = self.attempts.wrapping_add(1);
        self.failures += 1;
        // Three attempts fit into a session timeout.
        let deadline = shared.runtime.now() + self.timeout() / 3;
        match timeout_at(&shared.runtime, deadline, self.log_in(address)).await {
            Ok(result) => result,
            Err(_) => Err(End::Lost(format!("{address} did not answer in time"))),
        }
    }

    async fn log_in(&mut self, address: &str) -> Result<Connection<R>, End> {
        let runtime = &self.shared.runtime;
        let stream = runtime.connect(address).await;
        let stream = stream.map_err(|error| End::Lost(format!("{address}: {error}")))?;
        let mut connection = Connection::new(runtime.clone(), stream, self.timeout());
        let (session_id, password) =
            self.session.map_or((0, [0; PASSWORD_BYTES]), |(session, password)| (session.id, password));
        let request = ConnectRequest {
            last_zxid_seen: self.last_zxid,
            timeout_millis: i32::try_from(self.shared.options.session_timeout.as_millis())
                .unwrap_or(i32::MAX),
            session_id,
            password,
            read_only: Some(false),
        };
        let sent = connection.send(&request.encode());
        let response = loop {
            match connection.frame() {
                Ok(Some(frame)) => break ConnectResponse::decode(&frame),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
            // No request is sent before the session is established.
            let (_sender, mut none) = tokio::sync::mpsc::unbounded_channel();
            if !matches!(connection.wake(&mut none).await, Wake::Arrived) {
                return Err(End::Lost(format!("{address} closed the connection")));
            }
        };
        let response = response.map_err(|error| End::Lost(format!("{address}: {error}")))?;
        let Some(timeout) = u64::try_from(response.timeout_millis).ok().filter(|&millis| millis > 0) else {
            reached!(runtime, login_found_session_gone);
            return Err(End::Expired);
        };
        sometimes!(runtime, session_resumed, self.session.is_some());
        let spare = |until: Instant| until.saturating_since(runtime.now()).as_nanos() as u64;
        // A session that is resumed after its end by the client's count is another situation.
        let left = || self.shared.valid_until().map(spare).filter(|spare| *spare > 0).unwrap_or(u64::MAX);
        closest!(runtime, resumed_before_end_ns, left());
        let session = Session { id: response.session_id, timeout: Duration::from_millis(timeout) };
        self.session = Some((session, response.password));
        self.shared.established(session);
        self.shared.answered(sent);
        connection.set_timeout(session.timeout);
        if let Some((user, password)) = &self.shared.options.login {
            let proof = format!("{user}:{password}");
            connection.send(&Login { scheme: "digest", proof: proof.as_bytes() }.encode());
        }
        Ok(connection)
    }

    /// Serves a connection until it ends. Requests without an answer then have an unknown outcome.
    async fn serve(&mut self, mut connection: Connection<R>) -> End {
        self.failures = 0;
        self.shared.set_state(SessionState::Connected);
        self.waiting.drain(..).for_each(|order| connection.order(order));
        let end = self.exchange(&mut connection).await;
        if let End::Lost(_) = end {
            self.shared.set_state(SessionState::Disconnected);
        }
        let is_lost = matches!(end, End::Lost(_));
        sometimes!(self.shared.runtime, requests_lost, is_lost && !connection.pending.is_empty());
        let closing = connection.pending.iter().any(|pending| pending.order.request == Request::Close);
        for pending in connection.pending {
            let _ = pending.order.reply.send(Err(Error::ConnectionLoss));
        }
        if closing { End::Closed } else { end }
    }

    async fn exchange(&mut self, connection: &mut Connection<R>) -> End {
        loop {
            match connection.wake(&mut self.orders).await {
                Wake::Arrived => match self.receive(connection) {
                    Ok(None) => {}
                    Ok(Some(end)) => return end,
                    Err(error) => return End::Lost(error.to_string()),
                },
                Wake::Order(Some(order)) => {
                    connection.order(order);
                    while let Ok(order) = self.orders.try_recv() {
                        connection.order(order);
                    }
                }
                Wake::Order(None) => {
                    self.close_session(connection).await;
                    return End::Closed;
                }
                Wake::Lost => return End::Lost("the connection broke".to_owned()),
            }
        }
    }

    /// Handles all frames that have arrived.
    fn receive(&mut self, connection: &mut Connection<R>) -> Result<Option<End>, WireError> {
        while let Some(frame) = connection.frame()? {
            let mut reader = Reader::new(&frame);
            let header = ReplyHeader::read(&mut reader)?;
            if header.zxid > 0 {
                self.last_zxid = self.last_zxid.max(header.zxid);
            }
            match header.xid {
                xid::NOTIFICATION => connection.watches.fire(&WatcherEvent::read(&mut reader)?),
                xid::AUTH if header.err != code::OK => {
                    let reason = "the server refuses the login: it may not know the scheme `digest`";
                    return Ok(Some(End::Lost(reason.to_owned())));
                }
                xid::AUTH => {}
                xid::PING => connection.ping.take().into_iter().for_each(|sent| self.shared.answered(sent)),
                _ => {
                    if let Some(end) = self.settle(connection, header, &mut reader)? {
                        return Ok(Some(end));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Delivers a reply to the caller of its request.
    fn settle(
        &self,
        connection: &mut Connection<R>,
        header: ReplyHeader,
        reader: &mut Reader<'_>,
    ) -> Result<Option<End>, WireError> {
        let first = connection.pending.front().ok_or(WireError::Unknown { number: header.xid })?;
        if first.xid != header.xid {
            return Err(WireError::Unknown { number: header.xid });
        }
        let result = read_result(&first.order.request, header.err, reader)?;
        let Some(Pending { sent, order, .. }) = connection.pending.pop_front() else { return Ok(None) };
        let is_moved = matches!(result, Err(Error::SessionMoved));
        sometimes!(self.shared.runtime, request_on_moved_session, is_moved);
        let end = match (&result, order.request.op()) {
            (Err(Error::SessionExpired), _) => Some(End::Lost("the session has expired".to_owned())),
            (Err(Error::SessionMoved), _) => Some(End::Lost("the session has moved".to_owned())),
            (Ok(_), Op::Close) => Some(End::Closed),
            _ => None,
        };
        if end.is_none() {
            self.shared.answered(sent);
        }
        let result = result.map(|reply| Answer { reply, watch: watch(&order.request, connection) });
        if let Some(End::Closed) = end {
            self.shared.set_state(SessionState::Closed);
        }
        let _ = order.reply.send(result);
        Ok(end)
    }

    /// Ends the session when no client is left, so that its nodes don't wait for the timeout. Best effort.
    async fn close_session(&mut self, connection: &mut Connection<R>) {
        connection.send(&Request::Close.encode(0));
        let (_sender, mut none) = tokio::sync::mpsc::unbounded_channel();
        let deadline = self.shared.runtime.now() + self.timeout() / 3;
        let closed = async { while let Wake::Arrived = connection.wake(&mut none).await {} };
        let _ = timeout_at(&self.shared.runtime, deadline, closed).await;
    }

    /// Drops withdrawn requests; returns false if no client is left.
    fn keep_waiting(&mut self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(order) => self.waiting.push_back(order),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        self.waiting.retain(|order| !order.ticket.is_taken());
        true
    }

    /// Waits before the next attempt, once every server has failed since the last connection.
    async fn back_off(&self) {
        let Shared { runtime, options, .. } = &*self.shared;
        let Some(round) = self.failures.checked_sub(options.servers.len().max(1)) else { return };
        let mut random = [0; 8];
        runtime.fill_random(&mut random);
        let wait = options.backoff.wait(u32::try_from(round).unwrap_or(u32::MAX), random);
        runtime.sleep_until(runtime.now() + wait).await;
    }

    fn timeout(&self) -> Duration {
        self.session.map_or(self.shared.options.session_timeout, |(session, _)| session.timeout)
    }
}

/// Returns the body of a reply. For exists, a missing node is an answer and not an error.
fn read_result(
    request: &Request,
    err: i32,
    reader: &mut Reader<'_>,
) -> Result<Result<Option<Reply>, Error>, WireError> {
    match (err, request.op()) {
        (code::OK, op) => Reply::read(op, reader).map(|reply| Ok(Some(reply))),
        (code::NO_NODE, Op::Exists) => Ok(Ok(None)),
        (err, _) => Ok(Err(Error::of(err, request.path()))),
    }
}

fn watch<R: Runtime>(request: &Request, connection: &mut Connection<R>) -> Option<super::watches::Watch> {
    match request {
        Request::Exists { path, watch: true }
        | Request::Data { path, watch: true }
        | Request::Children { path, watch: true, .. } => Some(connection.watches.add(request.op(), path)),
        _ => None,
    }
}

probes! {
    /// A server refused to resume a session: it has ended.
    reached login_found_session_gone;
    /// A session went on over another connection.
    sometimes session_resumed;
    /// How long before its end here a session was resumed, in nanoseconds.
    closest resumed_before_end_ns;
    /// A connection was lost with requests unanswered: each may have taken effect.
    sometimes requests_lost;
    /// A request arrived on the former connection of a session, and had no effect.
    sometimes request_on_moved_session;
}
