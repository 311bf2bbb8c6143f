//! Statements that wait: for locks, with their timeouts and the search for deadlocks, or for a time.

use std::pin::pin;

use dlock_runtime::{probes, reached, sometimes};
use futures_util::future::{Either, select};
use sql::{SessionId, SqlError, Step};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, End, Session, after, sleep_until, terminated};
use super::core::{Interrupt, Statement, Wait};
use crate::world::machine::Machine;

impl<M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'_, M, S> {
    /// Runs a statement, and waits while it is blocked.
    pub(super) async fn run(&mut self, statement: Statement) -> Result<Step, End> {
        let Some(Session { id, wake }) = self.session.clone() else { return Err(End::Left) };
        let timeout = self.server.core().database.setting_millis(id, "statement_timeout");
        let timeout = (timeout > 0).then(|| after(self.server.machine().monotonic_nanos(), timeout));
        let step = self.server.act(id, |core, clocks| core.run(id, statement, clocks));
        if !matches!(step, Step::Blocked { .. } | Step::Sleeping { .. }) {
            return Ok(step);
        }
        reached!(self.server.machine(), statement_waited);
        let mut examined = None;
        loop {
            if let Some(step) = self.server.act(id, |core, _| core.take_step(id)) {
                return Ok(step);
            }
            let interrupt = self.server.core().take_interrupt(id);
            match interrupt {
                Some(Interrupt::Terminate) => return Err(End::Fatal(terminated())),
                Some(Interrupt::Cancel) => {
                    reached!(self.server.machine(), statement_cancelled);
                    return Ok(self.cancel(id, SqlError::user_cancel()));
                }
                None => {}
            }
            let Some(deadline) = self.next_deadline(id, timeout, examined) else { return Err(End::Left) };
            let sleep =
                pin!(sleep_until(self.server.machine(), (deadline.at < u64::MAX).then_some(deadline.at)));
            if let Either::Right(_) = select(pin!(wake.notified()), sleep).await {
                match self.expired(id, deadline) {
                    Some(step) => return Ok(step),
                    None => examined = deadline.examines,
                }
            }
        }
    }

    /// Returns the next time at which a statement that waits needs attention. `examined` is the wait that was
    /// searched for a deadlock.
    fn next_deadline(&self, id: SessionId, timeout: Option<u64>, examined: Option<u64>) -> Option<Deadline> {
        let core = self.server.core();
        let clocks = self.server.clocks();
        let timeout = Deadline { at: timeout.unwrap_or(u64::MAX), kind: Due::Statement, examines: None };
        let mut deadlines = vec![timeout];
        match core.waiting(id)? {
            Wait::Time { until } => {
                let left = until.unix_micros.saturating_sub(clocks.wall.unix_micros);
                let at =
                    clocks.monotonic.saturating_add(u64::try_from(left).unwrap_or(0).saturating_mul(1000));
                deadlines.push(Deadline { at, kind: Due::Sleep, examines: None });
            }
            Wait::Locks { since } => {
                let millis = |name| core.database.setting_millis(id, name);
                let lock_timeout = millis("lock_timeout");
                if lock_timeout > 0 {
                    let at = after(since, lock_timeout);
                    deadlines.push(Deadline { at, kind: Due::Lock, examines: None });
                }
                if examined != Some(since) {
                    let at = after(since, millis("deadlock_timeout"));
                    deadlines.push(Deadline { at, kind: Due::Deadlock, examines: Some(since) });
                }
            }
        }
        deadlines.into_iter().min_by_key(|deadline| deadline.at)
    }

    /// Does what is due. Returns the result of the statement if it has ended.
    fn expired(&self, id: SessionId, deadline: Deadline) -> Option<Step> {
        match deadline.kind {
            Due::Sleep => {
                self.server.act(id, |core, clocks| core.awake(id, clocks));
                None
            }
            Due::Statement => {
                reached!(self.server.machine(), statement_timed_out);
                Some(self.cancel(id, SqlError::statement_timeout()))
            }
            Due::Lock => {
                reached!(self.server.machine(), lock_timed_out);
                Some(self.cancel(id, SqlError::lock_timeout()))
            }
            Due::Deadlock => {
                let error = {
                    let core = self.server.core();
                    let circle = core.database.deadlock(id);
                    circle.map(|circle| core.database.deadlock_error(&circle))
                };
                sometimes!(self.server.machine(), deadlock_found, error.is_some());
                error.map(|error| self.cancel(id, error))
            }
        }
    }

    fn cancel(&self, session: SessionId, error: SqlError) -> Step {
        // It may have ended since.
        self.server.act(session, |core, clocks| match core.take_step(session) {
            Some(step) => step,
            None => core.cancel(session, error, clocks),
        })
    }
}

/// A time at which a statement that waits needs attention.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// On the monotonic clock, in nanoseconds.
    at: u64,
    kind: Due,
    /// The wait that is searched for a deadlock.
    examines: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    Statement,
    Lock,
    Deadlock,
    Sleep,
}

probes! {
    /// A statement waited for a lock or for a time.
    reached statement_waited;
    /// A deadlock was found among sessions.
    sometimes deadlock_found;
    /// `statement_timeout` ended a statement.
    reached statement_timed_out;
    /// `lock_timeout` ended a statement.
    reached lock_timed_out;
    /// A statement that waited was cancelled at the request of a client.
    reached statement_cancelled;
}
