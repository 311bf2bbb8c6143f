//! Chooses the leader and the members that may answer.
//!
//! It simulates the outcome of Raft, not Raft itself. A member serves while it and a majority reach the
//! leader in both directions. A leader without contact for an election timeout is replaced by a candidate
//! that gets a majority of votes. A member votes if it has no contact to the leader either, and has applied
//! no more than the candidate.

use std::pin::pin;

use dlock_runtime::{probes, reached, sometimes};
use futures_util::future::{Either, select};

use super::Cluster;
use super::core::Core;
use super::error::Refusal;
use crate::world::machine::Machine;

/// etcd's heartbeat interval.
pub(super) const TICK_NANOS: u64 = 100_000_000;

/// The interval at which the leader looks for leases that have ended (lessor.go, `runLoop`).
const EXPIRY_NANOS: u64 = 500_000_000;

/// etcd answers a request that finds no quorum after five seconds and two election timeouts (config.go,
/// `ReqTimeout`).
const REQUEST_NANOS: u64 = 5_000_000_000;

/// Election timeouts without a leader after which a stream that needs one ends (interceptor.go,
/// `monitorLeader`).
const STREAM_TIMEOUTS: u64 = 3;

/// Interval of progress notifications on a watch without events (watch.go).
const PROGRESS_NANOS: u64 = 600_000_000_000;

/// The reason why a request needs a quorum. The error without a quorum depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A proposal to Raft.
    Write,
    /// A linearizable read.
    Read,
    /// The leader itself: only it knows the remaining time of leases.
    Lease,
}

impl<M: Machine> Cluster<M> {
    /// Cuts a member off from the others, or connects it again. Clients still reach it.
    pub fn isolate(&self, member: usize, is_isolated: bool) {
        if let Some(member) = self.core().members.get_mut(member) {
            member.is_isolated = is_isolated;
        }
        self.reconsider();
    }

    /// Makes `member` the leader, as `etcdctl move-leader` does. Every lease restarts. Returns false if the
    /// member does not serve.
    pub fn move_leader(&self, member: usize) -> bool {
        let mut core = self.core();
        if member >= core.members.len() || !self.serves(&core, member) {
            return false;
        }
        if member != core.leader {
            self.lead(&mut core, member);
            self.announce_leader(core);
        }
        true
    }

    /// Returns whether the member may answer now.
    pub fn is_serving(&self, member: usize) -> bool {
        self.serves(&self.core(), member)
    }

    /// Waits until the member may answer.
    pub(super) async fn ready(&self, member: usize, needs_leader: bool, need: Need) -> Result<(), Refusal> {
        if self.is_serving(member) {
            return Ok(());
        }
        let knows_leader = self.knows_leader(&self.core(), member, 1);
        if needs_leader && !knows_leader {
            self.note(member, |machine| reached!(machine, request_without_leader));
            return Err(Refusal::NoLeader);
        }
        let deadline = self.now(member).saturating_add(self.request_nanos());
        let ready = self.wait_until(member, deadline, || self.is_serving(member).then_some(())).await;
        self.note(member, |machine| sometimes!(machine, served_after_wait_for_quorum, ready.is_ok()));
        ready.map_err(|_| match need {
            Need::Write if !knows_leader => Refusal::Deadline,
            Need::Write | Need::Read => Refusal::Timeout,
            Need::Lease => Refusal::NoLeader,
        })
    }

    /// Waits until `done` returns a value; calls it after every change. Fails at `deadline` on the member's
    /// clock.
    pub(super) async fn wait_until<T>(
        &self,
        member: usize,
        deadline: u64,
        mut done: impl FnMut() -> Option<T>,
    ) -> Result<T, Refusal> {
        let mut timeout = pin!(self.sleep_until(member, deadline));
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            // Registers before `done` is called, so that no change is missed in between.
            changed.as_mut().enable();
            if let Some(result) = done() {
                return Ok(result);
            }
            if let Either::Right(_) = select(changed, timeout.as_mut()).await {
                return Err(Refusal::Timeout);
            }
        }
    }

    /// Returns how long a request may wait for a quorum, in nanoseconds.
    pub(super) fn request_nanos(&self) -> u64 {
        REQUEST_NANOS + 2 * self.election_nanos()
    }

    /// Sets the machine of a member whose process is about to start.
    pub(super) fn join(&self, member: usize, machine: M) {
        // The machine is the same in every life of the process.
        if let Some(place) = self.shared.machines.get(member)
            && place.set(machine).is_ok()
        {
            self.restart_timeout(member);
        }
    }

    /// Restarts the election timeout of a member whose process has started, and wakes waiting requests.
    pub(super) fn rejoin(&self, member: usize) {
        self.restart_timeout(member);
        self.reconsider();
    }

    /// Restarts the member's election timeout.
    fn restart_timeout(&self, member: usize) {
        let now = self.now(member);
        if let Some(member) = self.core().members.get_mut(member) {
            member.leader_seen_at = now;
            member.expired_at = now;
        }
    }

    /// Runs the heartbeat of a member.
    pub(super) fn tick(&self, member: usize) {
        let now = self.now(member);
        let mut core = self.core();
        let is_serving = self.serves(&core, member);
        if is_serving {
            core.members[member].leader_seen_at = now;
            self.catch_up(&mut core, member);
        } else if self.can_win(&core, member, now) {
            self.lead(&mut core, member);
            self.note(member, |machine| reached!(machine, leader_elected));
            return self.announce_leader(core);
        }
        self.look_after_streams(&mut core, member);
        let has_changed = core.members[member].is_serving != is_serving;
        core.members[member].is_serving = is_serving;
        let may_expire = is_serving
            && core.leader == member
            && now.saturating_sub(core.members[member].expired_at) >= EXPIRY_NANOS;
        if may_expire {
            core.members[member].expired_at = now;
        }
        drop(core);
        if may_expire {
            self.expire_leases();
        }
        if has_changed {
            self.shared.changed.notify_waiters();
        }
    }

    /// Returns true if the member and a majority reach the leader.
    pub(super) fn serves(&self, core: &Core, member: usize) -> bool {
        self.reach(core, member, core.leader) && self.has_majority(core, core.leader)
    }

    /// Returns true if the two members reach each other.
    pub(super) fn reach(&self, core: &Core, one: usize, other: usize) -> bool {
        let Some(machine) = self.machine(one).filter(|machine| machine.is_running()) else { return false };
        if one == other {
            return true;
        }
        let is_isolated = core.members[one].is_isolated || core.members[other].is_isolated;
        let (name, _) = &self.shared.options.members[other];
        !is_isolated && self.machine(other).is_some() && machine.reaches(name)
    }

    /// Returns true if the member had contact to a leader within the last `timeouts` election timeouts.
    pub(super) fn knows_leader(&self, core: &Core, member: usize, timeouts: u64) -> bool {
        let silence = self.now(member).saturating_sub(core.members[member].leader_seen_at);
        self.serves(core, member) || silence < timeouts * self.election_nanos()
    }

    pub(super) fn has_majority(&self, core: &Core, member: usize) -> bool {
        let count = core.members.len();
        2 * (0..count).filter(|&other| self.reach(core, member, other)).count() > count
    }

    /// Returns true if the member's election timeout is over and a majority would vote for it.
    fn can_win(&self, core: &Core, member: usize, now: u64) -> bool {
        let silence = now.saturating_sub(core.members[member].leader_seen_at);
        if silence < self.election_timeout(member, core.term) {
            return false;
        }
        let votes = |&voter: &usize| {
            self.reach(core, member, voter)
                && core.members[voter].applied <= core.members[member].applied
                && (voter == member || !self.knows_leader(core, voter, 1))
        };
        let count = core.members.len();
        2 * (0..count).filter(votes).count() > count
    }

    /// Returns a member's election timeout in nanoseconds: 1 to 1.6 times the configured one, different for
    /// each member in each term, so that elections have a winner.
    fn election_timeout(&self, member: usize, term: u64) -> u64 {
        let share = (3 * member as u64 + 5 * term) % 7;
        self.election_nanos() / 10 * (10 + share)
    }

    /// Makes the member the leader. It does not know of earlier renewals, so every lease restarts, extended
    /// by an election timeout (lessor.go, `Promote`).
    fn lead(&self, core: &mut Core, member: usize) {
        let now = self.now(member);
        let has_leases = core.state.lessor.iter().next().is_some();
        self.note(member, |machine| sometimes!(machine, leases_prolonged_by_leader, has_leases));
        core.leader = member;
        core.term += 1;
        core.members[member].expired_at = now;
        core.state.lessor.promote(now, self.election_nanos());
        core.all_extended();
        for other in 0..core.members.len() {
            if self.reach(core, member, other) {
                core.members[other].leader_seen_at = self.now(other);
            }
        }
        self.catch_up_all(core);
    }

    fn announce_leader(&self, mut core: std::sync::MutexGuard<'_, Core>) {
        let (member, term) = (core.leader, core.term);
        let unreported = std::mem::take(&mut core.unreported);
        drop(core);
        self.shared.options.observer.leader_changed(member, term);
        self.report(&self.shared.options.name, &unreported);
        self.shared.changed.notify_waiters();
    }

    /// Catches up and wakes waiting requests after members or links have changed.
    fn reconsider(&self) {
        let mut core = self.core();
        self.catch_up_all(&mut core);
        drop(core);
        self.shared.changed.notify_waiters();
    }

    /// Ends streams that need a leader and have none; sends progress notifications on the others.
    fn look_after_streams(&self, core: &mut Core, member: usize) {
        if !core.streams.values().any(|stream| stream.member == member) {
            return;
        }
        if !self.knows_leader(core, member, STREAM_TIMEOUTS) {
            let ended =
                core.streams.extract_if(.., |_, stream| stream.member == member && stream.needs_leader);
            for (_, stream) in ended.collect::<Vec<_>>() {
                self.note(member, |machine| reached!(machine, watch_ended_without_leader));
                stream.fail(Refusal::NoLeader.into());
            }
        }
        let moment = self.moment(core, member);
        for stream in core.streams.values_mut().filter(|stream| stream.member == member) {
            stream.notify_progress(&moment, PROGRESS_NANOS);
        }
    }
}

probes! {
    /// A member that knows no leader refused a request.
    reached request_without_leader;
    /// A request waited for a quorum, and was served.
    sometimes served_after_wait_for_quorum;
    /// A member won an election.
    reached leader_elected;
    /// A new leader prolonged leases, since it does not know their last renewals.
    sometimes leases_prolonged_by_leader;
    /// A member ended a watch, since it had heard of no leader for too long.
    reached watch_ended_without_leader;
}
