//! Runs requests on the store, and passes the changes on to locks, members, watches and observers.

use dlock_runtime::{probes, reached, sometimes};

use super::Cluster;
use super::core::Core;
use super::error::Refusal;
use super::lease::{Lease, Renewal};
use super::locks::Cause;
use super::quorum::Need;
use super::store::State;
use super::store::write::Write;
use super::watch::Moment;
use crate::world::machine::Machine;

/// The most leases that the leader revokes at once (lessor.go, `leaseRevokeRate` halved).
const REVOKED_MAX: usize = 500;

impl<M: Machine> Cluster<M> {
    /// Runs a request of `client` that the member may answer.
    pub(super) fn apply<T>(
        &self,
        client: &str,
        request: impl FnOnce(&mut Core) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.apply_because(client, false, request)
    }

    /// Revokes, on the leader, the leases that have ended on its clock.
    pub(super) fn expire_leases(&self) {
        let now = self.now(self.leader());
        let expired = self.core().state.lessor.expired(now, REVOKED_MAX);
        self.note(self.leader(), |machine| sometimes!(machine, lease_expired, !expired.is_empty()));
        for lease in expired {
            // A client may have revoked it meanwhile.
            let _ =
                self.apply_because(&self.shared.options.name, true, |core| revoke(&mut core.state, lease));
        }
    }

    /// Renews a lease and returns its time to live, or `None` if it does not exist. Waits while a lease has
    /// ended and is not revoked yet.
    pub(super) async fn keep_alive(
        &self,
        member: usize,
        client: &str,
        lease: i64,
        needs_leader: bool,
    ) -> Result<Option<i64>, Refusal> {
        let deadline = self.now(member).saturating_add(self.request_nanos());
        self.ready(member, needs_leader, Need::Lease).await?;
        let renew = || {
            if !self.is_serving(member) {
                return None;
            }
            let now = self.now(self.leader());
            match self.apply(client, |core| core.renew(lease, now)) {
                Ok(Renewal::Renewed { ttl_seconds }) => Some(Some(ttl_seconds)),
                Ok(Renewal::Ending) => {
                    self.note(member, |machine| reached!(machine, keepalive_of_ended_lease));
                    None
                }
                Err(_) => {
                    self.note(member, |machine| reached!(machine, keepalive_of_unknown_lease));
                    Some(None)
                }
            }
        };
        self.wait_until(member, deadline, renew).await
    }

    /// Evaluates a probe on the machine of a member.
    pub(super) fn note(&self, member: usize, evaluate: impl FnOnce(&M)) {
        if let Some(machine) = self.machine(member) {
            evaluate(machine);
        }
    }

    /// Applies to the member all changes that reach it, and sends them to its watches.
    pub(super) fn catch_up(&self, core: &mut Core, member: usize) {
        let revision = core.state.store.revision();
        if core.members[member].applied < revision && self.serves(core, member) {
            self.learn(core, member);
        }
    }

    /// As [`Cluster::catch_up`], for all members.
    pub(super) fn catch_up_all(&self, core: &mut Core) {
        if !self.has_majority(core, core.leader) {
            return;
        }
        for member in 0..core.members.len() {
            if self.reach(core, member, core.leader) {
                self.learn(core, member);
            }
        }
    }

    fn learn(&self, core: &mut Core, member: usize) {
        let revision = core.state.store.revision();
        if core.members[member].applied == revision {
            return;
        }
        core.members[member].applied = revision;
        if core.streams.is_empty() {
            return;
        }
        let moment = self.moment(core, member);
        let Core { streams, state, .. } = core;
        for stream in streams.values_mut().filter(|stream| stream.member == member) {
            stream.advance(&state.store, &moment);
        }
    }

    pub(super) fn moment(&self, core: &Core, member: usize) -> Moment {
        Moment { header: core.header(member), now: self.now(member) }
    }

    fn apply_because<T>(
        &self,
        client: &str,
        is_expired: bool,
        request: impl FnOnce(&mut Core) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut core = self.core();
        let before = core.state.store.revision();
        let result = request(&mut core);
        let has_changed = core.state.store.revision() != before;
        if has_changed {
            core.follow_locks(before + 1, Cause { client, is_expired });
            self.catch_up_all(&mut core);
        }
        let unreported = std::mem::take(&mut core.unreported);
        drop(core);
        if has_changed {
            self.shared.changed.notify_waiters();
        }
        self.report(client, &unreported);
        result
    }
}

impl Core {
    /// Records that a new leader has extended every lease.
    pub(super) fn all_extended(&mut self) {
        for (id, lease) in self.state.lessor.iter() {
            self.locks.extended(lease.keys.iter(), id, lease.ttl_millis(), &mut self.unreported);
        }
    }

    fn renew(&mut self, lease: i64, now: u64) -> Result<Renewal, Refusal> {
        let renewal = self.state.lessor.renew(lease, now)?;
        if let (Renewal::Renewed { .. }, Ok(found)) = (renewal, self.state.lessor.find(lease)) {
            self.locks.extended(found.keys.iter(), lease, found.ttl_millis(), &mut self.unreported);
        }
        Ok(renewal)
    }

    /// Passes the changes since the revision `from` to the view of the locks.
    fn follow_locks(&mut self, from: i64, cause: Cause<'_>) {
        let Self { state, locks, unreported, .. } = self;
        let ttl = |lease: i64| state.lessor.find(lease).ok().map(Lease::ttl_millis);
        for (_, changes) in state.store.changes(from, state.store.revision()) {
            changes.iter().for_each(|change| locks.follow(change, cause, ttl, unreported));
        }
    }
}

/// Revokes a lease: deletes its keys in one transaction.
pub(super) fn revoke(state: &mut State, id: i64) -> Result<(), Refusal> {
    let lease = state.lessor.remove(id)?;
    let mut write = Write::begin(state);
    for key in &lease.keys {
        write.delete_key(key);
    }
    write.commit();
    Ok(())
}

probes! {
    /// The leader revoked a lease whose time was over.
    sometimes lease_expired;
    /// A keepalive arrived for a lease that had ended and was not revoked yet.
    reached keepalive_of_ended_lease;
    /// A keepalive arrived for a lease that the cluster does not know any more.
    reached keepalive_of_unknown_lease;
}
