//! The events of a lock: a small fixed vocabulary of `tracing` events.
//!
//! A production log, the simulator's trace and the history that the audit judges are all made of these
//! events, so they can't disagree. Every event has the target `dlock` and the field `event`, which names it.
//! Ids are hashed ([`crate::id_hash`]) and owner tokens cut to a prefix ([`crate::Owner::prefix`]), since
//! anyone who knows a whole owner token can release the lock.

use std::time::Duration;

use crate::{FencingToken, LockKey, Owner};

/// The outcome of an attempt to acquire, renew or release; the field `outcome` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// The lock was taken by another owner.
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
    /// As many acquires waited for the lock as may.
    Full,
}

impl Outcome {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Contended,
        Self::NotOwner,
        Self::Timeout,
        Self::Expired,
        Self::Cancelled,
        Self::Error,
        Self::Full,
    ];

    /// Returns the value of the field `outcome`, and of the metrics' label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Contended => "contended",
            Self::NotOwner => "not_owner",
            Self::Timeout => "timeout",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::Full => "full",
        }
    }
}

/// The table of this crate's events: calls the macro `$then` with `$first` and all rows.
///
/// A row is `Variant as Kind = "name" { field: type => logged field: logged type, … }`: the variant of
/// [`Event`] with its fields, the name of the event in logs, and the variant and fields for readers of logs.
/// [`Event`] is generated from the table here; the audit of crate `history` reads logs with it. Each event
/// also has the key and the owner.
#[doc(hidden)]
#[macro_export]
macro_rules! lease_events {
    ($then:ident $first:tt) => {
        $then! {
            $first
            /// An acquire began.
            Requested as LeaseRequested = "lease_requested" { ttl: Duration => ttl_millis: Option<u64> }
            /// The acquire goes on under an owner token of its own, right after the `lease_not_acquired` of
            /// the one before.
            Retried as LeaseRetried = "lease_retried" { ttl: Duration => ttl_millis: Option<u64> }
            /// The request is for reading: other readers may hold the lock beside it.
            Shared as LeaseShared = "lease_shared" {}
            /// The request is for one of several permits. Right after `lease_requested` or `lease_retried`.
            Permits as LeasePermits = "lease_permits" { permits: u32 => permits: u64 }
            /// A fair lock put the request into its queue.
            Queued as LeaseQueued = "lease_queued" { position: u64 => position: u64 }
            /// The grant reached the client and was still valid.
            Acquired as LeaseAcquired = "lease_acquired" {
                token: Option<FencingToken> => token: u64,
                ttl: Duration => ttl_millis: Option<u64>,
                valid: Duration => valid_micros: Option<u64>
            }
            /// The acquire ended without a grant.
            NotAcquired as LeaseNotAcquired = "lease_not_acquired" { outcome: Outcome => outcome: Option<Name> }
            /// The lease was extended.
            Renewed as LeaseRenewed = "lease_renewed" {
                token: Option<FencingToken> => token: u64,
                valid: Duration => valid_micros: Option<u64>
            }
            /// One attempt to extend the lease failed.
            RenewFailed as LeaseRenewFailed = "lease_renew_failed" {
                token: Option<FencingToken> => token: u64,
                outcome: Outcome => outcome: Option<Name>
            }
            /// The holder is about to request another TTL for its lease. A shorter one has shortened `valid`.
            TtlChanged as LeaseTtlChanged = "lease_ttl_changed" {
                token: Option<FencingToken> => token: u64,
                ttl: Duration => ttl_millis: Option<u64>,
                valid: Duration => valid_micros: Option<u64>
            }
            /// The holder must stop: the lease could not be renewed, or is another's.
            Lost as LeaseLost = "lease_lost" {
                token: Option<FencingToken> => token: u64,
                outcome: Outcome => outcome: Option<Name>
            }
            /// The holder began to release.
            ReleaseRequested as LeaseReleaseRequested = "lease_release_requested" { token: Option<FencingToken> => token: u64 }
            /// The release ended; `outcome` is `done` if the server deleted this owner's lock.
            Released as LeaseReleased = "lease_released" {
                token: Option<FencingToken> => token: u64,
                outcome: Outcome => outcome: Option<Name>
            }
            /// The request is refused if more than so many would wait. Right after `lease_requested` or
            /// `lease_retried`.
            Bounded as LeaseBounded = "lease_bounded" { waiters_max: u32 => waiters_max: u64 }
        }
    };
}

/// Documents a field of [`Event`].
macro_rules! field_doc {
    (ttl) => {
        "The lease's time to live."
    };
    (permits) => {
        "The number of permits of the key."
    };
    (waiters_max) => {
        "The most requests that may wait for the key at once."
    };
    (position) => {
        "The place in the queue; lower is served first."
    };
    (token) => {
        "The grant's fencing token, if it has one."
    };
    (valid) => {
        "The time for which the holder may still trust the lease, by its own clock."
    };
    (outcome) => {
        "The outcome."
    };
}

/// Generates [`Event`] from the table.
macro_rules! events {
    (
        {}
        $(
            $(#[$doc:meta])*
            $variant:ident as $kind:ident = $name:literal {
                $($field:ident: $type:ty => $logged:ident: $logged_type:ty),*
            }
        )*
    ) => {
        /// One event in the life of a lease, seen from its client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Event {
            $(
                #[doc = concat!("`", $name, "`.")]
                $(#[$doc])*
                $variant { $( #[doc = field_doc!($field)] $field: $type, )* },
            )*
        }

        impl Event {
            /// Returns the value of the field `event`.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant { .. } => $name, )* }
            }

            fn fields(self) -> Fields {
                match self {
                    $( Self::$variant { $($field),* } => Fields { $($field: Some($field),)* ..Fields::default() }, )*
                }
            }
        }
    };
}

lease_events!(events {});

/// The fields that an event may have.
#[derive(Default)]
struct Fields {
    token: Option<Option<FencingToken>>,
    ttl: Option<Duration>,
    valid: Option<Duration>,
    permits: Option<u32>,
    position: Option<u64>,
    outcome: Option<Outcome>,
    waiters_max: Option<u32>,
}

impl Event {
    /// Emits the event of the lease of `owner` on `key`, with the fields that it has: `event`,
    /// `resource_type`, `resource_id_hash`, `owner_token_prefix`, `fencing_token`, `ttl_millis`,
    /// `valid_micros`, `position`, `outcome`, `permits`, `waiters_max`. The fencing token of a lease without
    /// one is logged as 0.
    pub fn emit(self, key: &LockKey, owner: &Owner) {
        let fields = self.fields();
        // One call for all events: a subscriber then keeps data for only one call site.
        tracing::info!(
            target: "dlock",
            event = self.name(),
            resource_type = key.resource_type(),
            resource_id_hash = key.id_hash(),
            owner_token_prefix = owner.prefix(),
            fencing_token = fields.token.map(|token| token.map_or(0, FencingToken::as_u64)),
            ttl_millis = fields.ttl.map(|ttl| saturate(ttl.as_millis())),
            valid_micros = fields.valid.map(|valid| saturate(valid.as_micros())),
            position = fields.position,
            outcome = fields.outcome.map(Outcome::as_str),
            permits = fields.permits,
            waiters_max = fields.waiters_max,
        );
    }
}

fn saturate(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
