//! Leases: their keys, and their ends on the leader's clock. Source: etcd's `server/lease/lessor.go`.

use std::collections::{BTreeMap, BTreeSet};

use super::error::Refusal;

/// The longest time to live that etcd grants, in seconds.
const TTL_SECONDS_MAX: i64 = 9_000_000_000;

const SECOND: u64 = 1_000_000_000;

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Lessor {
    leases: BTreeMap<i64, Lease>,
}

/// One lease.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) ttl_seconds: i64,
    /// On the leader's monotonic clock, in nanoseconds.
    expires_at: u64,
    pub(super) keys: BTreeSet<Vec<u8>>,
}

impl Lessor {
    /// Grants a lease for at least `least_seconds`.
    pub(super) fn grant(
        &mut self,
        id: i64,
        ttl_seconds: i64,
        least_seconds: i64,
        now: u64,
    ) -> Result<i64, Refusal> {
        if ttl_seconds > TTL_SECONDS_MAX {
            return Err(Refusal::LeaseTtlTooLarge);
        }
        if self.leases.contains_key(&id) {
            return Err(Refusal::LeaseExists);
        }
        let ttl_seconds = ttl_seconds.max(least_seconds);
        let mut lease = Lease { ttl_seconds, expires_at: 0, keys: BTreeSet::new() };
        lease.refresh(now, 0);
        self.leases.insert(id, lease);
        Ok(ttl_seconds)
    }

    pub(super) fn find(&self, id: i64) -> Result<&Lease, Refusal> {
        self.leases.get(&id).ok_or(Refusal::LeaseNotFound)
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.leases.contains_key(&id)
    }

    /// Restarts the lease's time to live, unless it has ended and only waits to be revoked.
    pub(super) fn renew(&mut self, id: i64, now: u64) -> Result<Renewal, Refusal> {
        let lease = self.leases.get_mut(&id).ok_or(Refusal::LeaseNotFound)?;
        if lease.expires_at <= now {
            return Ok(Renewal::Ending);
        }
        lease.refresh(now, 0);
        Ok(Renewal::Renewed { ttl_seconds: lease.ttl_seconds })
    }

    /// Restarts every lease under a new leader, `extra` nanoseconds longer: the new leader does not know the
    /// last renewals.
    pub(super) fn promote(&mut self, now: u64, extra: u64) {
        self.leases.values_mut().for_each(|lease| lease.refresh(now, extra));
    }

    /// Returns the leases that have ended, the earliest first, at most `most`.
    pub(super) fn expired(&self, now: u64, most: usize) -> Vec<i64> {
        let ended = self.leases.iter().filter(|(_, lease)| lease.expires_at <= now);
        let mut ended: Vec<_> = ended.map(|(id, lease)| (lease.expires_at, *id)).collect();
        ended.sort_unstable();
        ended.into_iter().map(|(_, id)| id).take(most).collect()
    }

    /// Removes the lease and returns it, so that its keys can be deleted.
    pub(super) fn remove(&mut self, id: i64) -> Result<Lease, Refusal> {
        self.leases.remove(&id).ok_or(Refusal::LeaseNotFound)
    }

    /// Returns all leases in the order in which they end, as etcd lists them.
    pub(super) fn by_end(&self) -> Vec<i64> {
        let mut leases: Vec<_> = self.leases.iter().map(|(id, lease)| (lease.expires_at, *id)).collect();
        leases.sort_unstable();
        leases.into_iter().map(|(_, id)| id).collect()
    }

    /// Moves a key from one lease to another; 0 is no lease.
    pub(super) fn move_key(&mut self, key: &[u8], from: i64, to: i64) {
        if from == to {
            return;
        }
        if let Some(lease) = self.leases.get_mut(&from) {
            lease.keys.remove(key);
        }
        if let Some(lease) = self.leases.get_mut(&to) {
            lease.keys.insert(key.to_vec());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, &Lease)> {
        self.leases.iter().map(|(id, lease)| (*id, lease))
    }
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    Renewed {
        ttl_seconds: i64,
    },
    /// The lease has ended and is about to be revoked.
    Ending,
}

impl Lease {
    fn refresh(&mut self, now: u64, extra: u64) {
        let ttl = u64::try_from(self.ttl_seconds).unwrap_or(0).saturating_mul(SECOND);
        self.expires_at = now.saturating_add(ttl).saturating_add(extra);
    }

    pub(super) fn ttl_millis(&self) -> u64 {
        u64::try_from(self.ttl_seconds).unwrap_or(0).saturating_mul(1000)
    }

    /// Returns the remaining time in whole seconds, rounded toward zero as etcd does; negative after the end.
    pub(super) fn remaining_seconds(&self, now: u64) -> i64 {
        let seconds = i64::try_from(self.expires_at.abs_diff(now) / SECOND).unwrap_or(i64::MAX);
        if self.expires_at < now { -seconds } else { seconds }
    }
}
