//! The background task: expires keys and syncs the append-only file.

use std::pin::pin;
use std::time::Duration;

use futures_util::future;

use super::Server;
use super::core::{Core, Wait};
use super::reply::Reply;
use super::waiting::Blocked;
use crate::world::machine::Machine;

/// Redis looks for expired keys ten times a second.
const EXPIRY_TICK_MS: i64 = 100;
/// The interval of the policy `everysec`.
const SYNC_MICROS: i64 = 1_000_000;

impl Core {
    /// Returns when the next key or field expires or the next sync is due, in microseconds on the wall clock.
    fn next_task(&self) -> Option<i64> {
        let databases = self.state.databases().iter().filter(|_| !self.state.is_replica);
        let due_ms = databases.flat_map(|keys| keys.next_due().into_iter().chain(keys.next_field())).min();
        let tick = due_ms.map(tick_after);
        let sync = self.journal.is_dirty().then(|| self.synced_micros.saturating_add(SYNC_MICROS));
        match (tick, sync) {
            (Some(tick), Some(sync)) => Some(tick.min(sync)),
            (tick, sync) => tick.or(sync),
        }
    }

    /// Removes expired keys and fields. A replica leaves that to its primary.
    pub(super) fn expire_due(&mut self) {
        if !self.state.is_replica {
            self.state.expire_due();
        }
    }

    /// Returns true if the background task would wake too late for the next expiry or sync.
    pub(super) fn oversleeps(&self) -> bool {
        self.alarm_micros.is_some_and(|alarm| self.next_task().is_some_and(|task| task < alarm))
    }
}

/// Returns the first tick after a time in milliseconds, in microseconds.
fn tick_after(due_ms: i64) -> i64 {
    (due_ms.div_euclid(EXPIRY_TICK_MS).saturating_add(1)).saturating_mul(EXPIRY_TICK_MS * 1000)
}

impl<M: Machine> Server<M> {
    /// Expires keys ten times a second, as Redis does, and syncs the append-only file. Run it beside the
    /// connections for as long as the server is up. It sleeps while there is nothing to do.
    pub async fn background(&self) {
        loop {
            let sleep = self.sleep_needed();
            let woken = pin!(self.shared.wake.notified());
            match sleep {
                Some(duration) => {
                    let sleeping = pin!(self.shared.machine.sleep(duration));
                    future::select(woken, sleeping).await;
                }
                None => woken.await,
            }
            self.tick();
        }
    }

    /// Wakes the background task. Call this when the server's wall clock was set: keys may be due earlier
    /// than before.
    pub fn clock_changed(&self) {
        self.shared.wake.notify_one();
        // WAIT looks at the clock, too.
        self.shared.acknowledged.notify_waiters();
        self.core().state.wishes.wake_all();
    }

    /// Waits for replicas (WAIT). Returns how many have acknowledged.
    pub(super) async fn wait(&self, wait: Wait) -> usize {
        loop {
            let acknowledged = pin!(self.shared.acknowledged.notified());
            let count = self.core().replication.acknowledged(wait.offset);
            let left_micros = wait.deadline_micros.map(|deadline| deadline - self.now_micros());
            if count >= wait.replicas || left_micros.is_some_and(|left| left <= 0) {
                return count;
            }
            match left_micros {
                None => acknowledged.await,
                Some(left) => {
                    let left = Duration::from_micros(left.unsigned_abs());
                    future::select(acknowledged, pin!(self.shared.machine.sleep(left))).await;
                }
            }
        }
    }

    /// Waits until the client whose connection is numbered `client` gets elements, or until its deadline.
    /// Returns its reply.
    pub(super) async fn wait_for_elements(&self, client: u64, blocked: Blocked) -> Reply {
        loop {
            let woken = pin!(blocked.wake.notified());
            let left_micros = blocked.deadline_micros.map(|deadline| deadline - self.now_micros());
            {
                let wishes = &mut self.core().state.wishes;
                if let Some(reply) = wishes.take_reply(client) {
                    return reply;
                }
                if left_micros.is_some_and(|left| left <= 0) {
                    wishes.remove(client);
                    return Reply::NilArray;
                }
            }
            match left_micros {
                None => woken.await,
                Some(left) => {
                    let left = Duration::from_micros(left.unsigned_abs());
                    future::select(woken, pin!(self.shared.machine.sleep(left))).await;
                }
            }
        }
    }

    pub(super) fn acknowledge(&self, client: u64, offset: u64) {
        self.core().replication.acknowledge(client, offset);
        self.shared.acknowledged.notify_waiters();
    }

    /// Returns how long the background task may sleep; `None` means until it is woken.
    fn sleep_needed(&self) -> Option<Duration> {
        let now = self.now_micros();
        let mut core = self.core();
        let observer = self.shared.options.observer.due_ms().filter(|_| !core.state.is_replica);
        let task = core.next_task().into_iter().chain(observer.map(tick_after)).min();
        core.alarm_micros = Some(task.unwrap_or(i64::MAX));
        let mut left = task?.saturating_sub(now).max(0);
        if core.journal.is_dirty() {
            // A clock that was set back must not delay the sync.
            left = left.min(SYNC_MICROS);
        }
        Some(Duration::from_micros(left.unsigned_abs()))
    }

    /// Wakes the background task if the observer is due before.
    pub(super) fn rouse_for_observer(&self) {
        let Some(due_ms) = self.shared.options.observer.due_ms() else { return };
        let alarm = self.core().alarm_micros;
        if alarm.is_some_and(|alarm| tick_after(due_ms) < alarm) {
            self.shared.wake.notify_one();
        }
    }

    fn tick(&self) {
        self.pass(self.now_micros().div_euclid(1000));
        self.act(|core| {
            core.alarm_micros = None;
            core.expire_due();
            let since_sync = core.state.now_micros.abs_diff(core.synced_micros);
            if core.journal.is_dirty() && since_sync >= SYNC_MICROS.unsigned_abs() {
                core.journal.sync();
                core.synced_micros = core.state.now_micros;
            }
        });
    }
}
