//! The events of a lock: a small fixed vocabulary of `tracing` events.
//!
//! The same events make up a production log, the simulator's trace and the history that the audit judges, so
//! they can't disagree. Every event has the target `dlock` and the field `event`, which names it; ids are
//! hashed ([`crate::id_hash`]) and owner tokens cut to a prefix ([`crate::Owner::prefix`]), since a whole one
//! suffices to release the lock.

use std::time::Duration;

use crate::{FencingToken, LockKey, Owner};

/// How an acquire, a renewal or a release ended; the field `outcome` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// Another owner held the lock.
    Contended,
    /// The stored owner is not this one: the lease expired, or was taken over.
    NotOwner,
    /// The deadline passed.
    Timeout,
    /// The lease's validity was over: a grant that came too late, or a lease that was not renewed in time.
    Expired,
    /// The caller dropped the future.
    Cancelled,
    /// The lock server failed or could not be reached.
    Error,
}

impl Outcome {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 7] = [
        Self::Done,
        Self::Contended,
        Self::NotOwner,
        Self::Timeout,
        Self::Expired,
        Self::Cancelled,
        Self::Error,
    ];

    /// The value of the field `outcome`, and of the metrics' label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Contended => "contended",
            Self::NotOwner => "not_owner",
            Self::Timeout => "timeout",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// One event in the life of a lease, seen from its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// `lease_requested`: an acquire began.
    Requested {
        /// The lease's time to live.
        ttl: Duration,
    },
    /// `lease_retried`: the acquire goes on under an owner token of its own, right after the
    /// `lease_not_acquired` of the one before.
    Retried {
        /// The lease's time to live.
        ttl: Duration,
    },
    /// `lease_queued`: a fair lock put the request into its queue.
    Queued {
        /// The place in the queue; lower is served first.
        position: u64,
    },
    /// `lease_acquired`: the grant arrived and was still valid.
    Acquired {
        /// The grant's fencing token.
        token: FencingToken,
        /// The lease's time to live.
        ttl: Duration,
        /// How long the holder may still trust it.
        valid: Duration,
    },
    /// `lease_not_acquired`: the acquire ended without a grant.
    NotAcquired {
        /// Why.
        outcome: Outcome,
    },
    /// `lease_renewed`: the lease was extended.
    Renewed {
        /// The grant's fencing token.
        token: FencingToken,
        /// How long the holder may trust it from now on.
        valid: Duration,
    },
    /// `lease_renew_failed`: one attempt to extend the lease failed.
    RenewFailed {
        /// The grant's fencing token.
        token: FencingToken,
        /// Why.
        outcome: Outcome,
    },
    /// `lease_lost`: the holder must stop: the lease could not be renewed, or is another's.
    Lost {
        /// The grant's fencing token.
        token: FencingToken,
        /// Why.
        outcome: Outcome,
    },
    /// `lease_release_requested`: the holder began to release the lease.
    ReleaseRequested {
        /// The grant's fencing token.
        token: FencingToken,
    },
    /// `lease_released`: the release ended; `outcome` is `done` if the server ended this owner's lease.
    Released {
        /// The grant's fencing token.
        token: FencingToken,
        /// How.
        outcome: Outcome,
    },
}

impl Event {
    /// The value of the field `event`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requested { .. } => "lease_requested",
            Self::Retried { .. } => "lease_retried",
            Self::Queued { .. } => "lease_queued",
            Self::Acquired { .. } => "lease_acquired",
            Self::NotAcquired { .. } => "lease_not_acquired",
            Self::Renewed { .. } => "lease_renewed",
            Self::RenewFailed { .. } => "lease_renew_failed",
            Self::Lost { .. } => "lease_lost",
            Self::ReleaseRequested { .. } => "lease_release_requested",
            Self::Released { .. } => "lease_released",
        }
    }

    /// Emits the event of the lease of `owner` on `key`, with the fields that it has: `event`,
    /// `resource_type`, `resource_id_hash`, `owner_token_prefix`, `fencing_token`, `ttl_millis`,
    /// `valid_micros`, `position`, `outcome`.
    pub fn emit(self, key: &LockKey, owner: &Owner) {
        tracing::info!(
            target: "dlock",
            event = self.name(),
            resource_type = key.resource_type(),
            resource_id_hash = key.id_hash(),
            owner_token_prefix = owner.prefix(),
            fencing_token = self.token().map(FencingToken::as_u64),
            ttl_millis = self.ttl().map(|ttl| saturate(ttl.as_millis())),
            valid_micros = self.valid().map(|valid| saturate(valid.as_micros())),
            position = self.position(),
            outcome = self.outcome().map(Outcome::as_str),
        );
    }

    const fn token(self) -> Option<FencingToken> {
        match self {
            Self::Acquired { token, .. }
            | Self::Renewed { token, .. }
            | Self::RenewFailed { token, .. }
            | Self::Lost { token, .. }
            | Self::ReleaseRequested { token }
            | Self::Released { token, .. } => Some(token),
            Self::Requested { .. }
            | Self::Retried { .. }
            | Self::Queued { .. }
            | Self::NotAcquired { .. } => None,
        }
    }

    const fn ttl(self) -> Option<Duration> {
        match self {
            Self::Requested { ttl } | Self::Retried { ttl } | Self::Acquired { ttl, .. } => Some(ttl),
            _ => None,
        }
    }

    const fn valid(self) -> Option<Duration> {
        match self {
            Self::Acquired { valid, .. } | Self::Renewed { valid, .. } => Some(valid),
            _ => None,
        }
    }

    const fn position(self) -> Option<u64> {
        match self {
            Self::Queued { position } => Some(position),
            _ => None,
        }
    }

    const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::NotAcquired { outcome }
            | Self::RenewFailed { outcome, .. }
            | Self::Lost { outcome, .. }
            | Self::Released { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
}

fn saturate(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
