//! One connection: a login, then requests in and replies and events out.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use dlock_runtime::{probes, reached, sometimes};
use dlock_zookeeper::wire::{
    ConnectRequest, ConnectResponse, Frames, Op, PASSWORD_BYTES, REQUEST_BYTES_MAX, Reader, Request,
    WireError, code,
};
use futures_util::future::{Either, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::Server;
use super::core::{Core, Now, needs_leader};
use super::session::password;
use super::words;
use crate::world::machine::Machine;

/// The number of the operation that authenticates a client.
const AUTH: i32 = 100;
/// The flags of a create with a TTL, which servers refuse unless they are configured otherwise.
const WITH_TTL: i32 = 5;
const SEQUENTIAL_WITH_TTL: i32 = 6;

pub(super) struct Connection<'a, M: Machine, S> {
    server: &'a Server<M>,
    stream: S,
    /// The client's name for observers.
    label: &'a str,
    number: u64,
    changed: Arc<Notify>,
    frames: Frames,
    /// A message that waits for the leader; later messages wait behind it.
    stalled: Option<Bytes>,
    is_logged_in: bool,
}

/// The result of handling a message.
enum Step {
    Done(&'static str),
    /// It can't be answered before the member is in touch again.
    Stall,
    /// It is malformed, or the member does not serve: the connection ends.
    HangUp,
}

impl<'a, M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, M, S> {
    pub(super) fn new(server: &'a Server<M>, stream: S, label: &'a str) -> Self {
        let (number, changed) = server.core().open(server.member);
        Self {
            server,
            stream,
            label,
            number,
            changed,
            frames: Frames::up_to(REQUEST_BYTES_MAX),
            stalled: None,
            is_logged_in: false,
        }
    }

    /// Serves until the client or the member closes the connection, or the stream breaks.
    pub(super) async fn serve(mut self) -> io::Result<()> {
        loop {
            if !self.is_logged_in
                && let Some(answer) = words::answer(self.frames.input(), self.server)
            {
                self.stream.write_all(answer.as_bytes()).await?;
                return self.stream.shutdown().await;
            }
            let goes_on = self.answer();
            let is_closing = self.send().await?;
            if !goes_on || is_closing {
                return self.stream.shutdown().await;
            }
            if !self.listen().await? {
                return Ok(());
            }
        }
    }

    /// Waits until there is something to do. Returns false if the client has left.
    async fn listen(&mut self) -> io::Result<bool> {
        let stalled = self.stalled.is_some();
        let shared = &self.server.shared;
        let pause = async {
            match stalled {
                true => self.server.machine.sleep(shared.options.tick / 4).await,
                false => std::future::pending().await,
            }
        };
        let read = pin!(self.stream.read_buf(self.frames.input()));
        let changed = pin!(self.changed.notified());
        match select(read, select(changed, pin!(pause))).await {
            Either::Left((read, _)) => Ok(read? > 0),
            Either::Right(_) => Ok(true),
        }
    }

    /// Handles the messages that have arrived. Returns false if the connection must end.
    fn answer(&mut self) -> bool {
        loop {
            let frame = match self.stalled.take() {
                Some(frame) => Ok(Some(frame)),
                None => self.frames.take(),
            };
            let Ok(frame) = frame else { return false };
            let Some(frame) = frame else { return true };
            match self.handle(&frame) {
                Ok(Step::Done(operation)) => self.server.report(self.label, operation),
                Ok(Step::Stall) => {
                    self.stalled = Some(frame);
                    return true;
                }
                Ok(Step::HangUp) | Err(_) => return false,
            }
        }
    }

    fn handle(&mut self, frame: &[u8]) -> Result<Step, WireError> {
        let server = self.server;
        server.attended(|core, now| {
            let member = &core.members[server.member];
            if !member.is_serving() || core.connections.get(&self.number).is_none_or(|c| c.is_closing) {
                return Ok(Step::HangUp);
            }
            if self.is_logged_in { self.request(core, now, frame) } else { self.log_in(core, now, frame) }
        })
    }

    fn log_in(&mut self, core: &mut Core, now: Now, frame: &[u8]) -> Result<Step, WireError> {
        let request = ConnectRequest::decode(frame)?;
        let member = &core.members[self.server.member];
        // A client must not see an older state than before.
        if request.last_zxid_seen > member.zxid(core.zxid) {
            return Ok(Step::HangUp);
        }
        if !member.is_in_touch() {
            reached!(self.server.machine, login_waits_for_leader);
            return Ok(Step::Stall);
        }
        let timeout = self.server.session_timeout(request.timeout_millis);
        let machine = &self.server.machine;
        let member = self.server.member;
        let known = core.sessions.get(&request.session_id);
        sometimes!(machine, session_moved, known.is_some_and(|session| session.member != member));
        sometimes!(machine, login_to_ended_session, request.session_id != 0 && known.is_none());
        // Another connection of that session to this member is closed, even if the password is wrong.
        core.displace(self.number, request.session_id);
        let id = match request.session_id {
            0 => core.begin_session(self.number, timeout, now),
            id if core.sessions.contains_key(&id) && request.password == password(id) => {
                core.move_session(self.number, id, timeout, now);
                Some(id)
            }
            _ => None,
        };
        let response = ConnectResponse {
            timeout_millis: id.map_or(0, |_| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)),
            session_id: id.unwrap_or(0),
            password: id.map_or([0; PASSWORD_BYTES], password),
            read_only: request.read_only.map(|_| false),
        };
        core.send(self.number, &response.encode());
        match id {
            Some(_) => self.is_logged_in = true,
            None => core.close(self.number),
        }
        Ok(Step::Done("createSession"))
    }

    fn request(&mut self, core: &mut Core, now: Now, frame: &[u8]) -> Result<Step, WireError> {
        let mut reader = Reader::new(frame);
        let (number, operation) = (reader.int()?, reader.int()?);
        if operation == AUTH {
            return self.authenticate(core, number, &mut reader);
        }
        let is_in_touch = core.members[self.server.member].is_in_touch();
        if is_in_touch && let Some(connected) = core.connections.get(&self.number) {
            core.touch(connected.session, now);
        }
        let Some(op) = Op::from_number(operation) else {
            self.server.machine.refused_unknown(&format!("operation {operation}"));
            core.refuse(self.number, number, -1, code::UNIMPLEMENTED);
            return Ok(Step::Done("unimplemented"));
        };
        if needs_leader(op) && !is_in_touch {
            reached!(self.server.machine, request_waits_for_leader);
            return Ok(Step::Stall);
        }
        let request = Request::read(op, &mut reader).map_err(|error| match error {
            WireError::Unknown { number: WITH_TTL | SEQUENTIAL_WITH_TTL } => code::UNIMPLEMENTED,
            WireError::Unknown { .. } => code::BAD_ARGUMENTS,
            _ => code::MARSHALLING_ERROR,
        });
        if request.as_ref().is_err_and(|refusal| *refusal == code::UNIMPLEMENTED) {
            self.server.machine.refused_unknown("create with a TTL");
        }
        let is_claim = matches!(&request, Ok(Request::Create { mode, .. }) if mode.ephemeral);
        sometimes!(self.server.machine, entry_of_lost_connection_met, is_claim && has_orphans(core));
        core.execute(self.number, number, op, request, now);
        Ok(Step::Done(op.name()))
    }

    /// Accepts authentication by the schemes that servers know without configuration. It changes nothing:
    /// there is no access control.
    fn authenticate(&self, core: &mut Core, number: i32, reader: &mut Reader<'_>) -> Result<Step, WireError> {
        reader.int()?;
        let scheme = reader.text()?;
        reader.buffer()?;
        match scheme.as_str() {
            "digest" | "ip" => core.answer(self.number, number, 0, code::OK),
            _ => core.refuse(self.number, number, 0, code::AUTH_FAILED),
        }
        Ok(Step::Done("auth"))
    }

    /// Sends the output. Returns true if the connection must end then.
    async fn send(&mut self) -> io::Result<bool> {
        loop {
            let (output, is_closing) = match self.server.core().connections.get_mut(&self.number) {
                Some(connected) => (std::mem::take(&mut connected.output), connected.is_closing),
                None => return Ok(true),
            };
            if output.is_empty() {
                return Ok(is_closing);
            }
            self.stream.write_all(&output).await?;
            self.stream.flush().await?;
        }
    }
}

impl<M: Machine, S> Drop for Connection<'_, M, S> {
    fn drop(&mut self) {
        self.server.core().hang_up(self.number);
    }
}

/// Returns true if a session without a connection has ephemeral nodes.
fn has_orphans(core: &Core) -> bool {
    let mut lost =
        core.sessions.iter().filter(|(_, session)| !core.connections.contains_key(&session.connection));
    lost.any(|(id, _)| !core.tree.ephemerals(*id).is_empty())
}

probes! {
    /// A session moved to another member.
    sometimes session_moved;
    /// A client tried to resume a session that had ended.
    sometimes login_to_ended_session;
    /// A login waited, since its member was out of touch with the leader.
    reached login_waits_for_leader;
    /// A request waited, since its member was out of touch with the leader.
    reached request_waits_for_leader;
    /// A claim was made while an ephemeral node of a session without a connection was there.
    sometimes entry_of_lost_connection_met;
}
