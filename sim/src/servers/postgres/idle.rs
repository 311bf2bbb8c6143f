//! A connection between two messages: its client may be idle for too long, and it may be ended from outside.

use std::pin::pin;

use dlock_runtime::{probes, reached, sometimes};
use futures_util::future::{Either, select};
use sql::{SessionId, SqlError, TransactionStatus};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::connection::{Connection, End, Idle, after, sleep_until, terminated};
use super::core::Interrupt;
use crate::world::machine::Machine;

impl<M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'_, M, S> {
    /// Begins to count the time in which the session is idle. PostgreSQL does so when it says that it is
    /// ready, and counts on until it has a whole message.
    pub(super) fn begin_idle(&mut self) {
        let Some(session) = &self.session else { return };
        let core = self.server.core();
        let (name, code, kind) = match core.database.status(session.id) {
            TransactionStatus::Idle => ("idle_session_timeout", "57P05", "idle-session"),
            _ => ("idle_in_transaction_session_timeout", "25P03", "idle-in-transaction"),
        };
        let millis = core.database.setting_millis(session.id, name);
        let at = after(self.server.machine().monotonic_nanos(), millis);
        let error = SqlError::new(code, format!("terminating connection due to {kind} timeout"));
        self.idle = (millis > 0).then_some(Idle { at, error });
    }

    /// Waits for bytes of the client. Meanwhile sends notifications, and ends the session if it is to end.
    pub(super) async fn listen(&mut self) -> Result<(), End> {
        let Some(session) = self.session.clone() else { return Err(End::Left) };
        loop {
            self.check_terminated(session.id)?;
            self.notify(session.id);
            self.send().await?;
            let deadline = self.idle.as_ref().map(|idle| idle.at);
            let read = pin!(self.stream.read_buf(&mut self.input));
            let woken = pin!(session.wake.notified());
            let sleep = pin!(sleep_until(self.server.machine(), deadline));
            match select(read, select(woken, sleep)).await {
                Either::Left((Ok(0) | Err(_), _)) => {
                    let status = self.server.core().database.status(session.id);
                    sometimes!(
                        self.server.machine(),
                        client_left_in_transaction,
                        status != TransactionStatus::Idle
                    );
                    return Err(End::Left);
                }
                Either::Left((Ok(_), _)) => return Ok(()),
                Either::Right((Either::Left(_), _)) => {}
                Either::Right((Either::Right(_), _)) => {
                    // It never ends without a deadline.
                    let Some(idle) = self.idle.take() else { continue };
                    reached!(self.server.machine(), idle_session_ended);
                    return Err(End::Fatal(idle.error));
                }
            }
        }
    }

    fn check_terminated(&self, session: SessionId) -> Result<(), End> {
        match self.server.core().take_interrupt(session) {
            Some(Interrupt::Terminate) => {
                reached!(self.server.machine(), session_terminated);
                Err(End::Fatal(terminated()))
            }
            // There is no statement to cancel.
            Some(Interrupt::Cancel) | None => Ok(()),
        }
    }
}

probes! {
    /// A session was idle for too long.
    reached idle_session_ended;
    /// A session was ended as an administrator does.
    reached session_terminated;
    /// A client left in the middle of a transaction.
    sometimes client_left_in_transaction;
}
