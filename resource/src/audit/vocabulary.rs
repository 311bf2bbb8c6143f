//! The vocabulary: every event that may stand in a history, with its target, its name and its fields, in one table.
//!
//! Source of the `dlock` part: [`dlock::event`]. The others are emitted by this crate (`resource`, `worker`) and by the
//! simulator (`server`, `fault`).

use super::name::Name;
use super::record::{Field, Record, RecordError};

/// Builds [`EventName`], [`Kind`] and the way from and to a [`Record`] out of the one table below.
macro_rules! vocabulary {
    ($($target:literal { $( $(#[$doc:meta])* $variant:ident = $name:literal { $($field:ident: $type:ty),* } )* })*) => {
        /// The name of an event: the value of its field `event`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventName { $($( $(#[$doc])* $variant, )*)* }

        impl EventName {
            /// Every name, in the table's order.
            pub const ALL: &[Self] = &[$($( Self::$variant, )*)*];

            /// The name as logs have it: `lease_acquired`.
            pub const fn as_str(self) -> &'static str {
                match self { $($( Self::$variant => $name, )*)* }
            }

            /// The `tracing` target that the event is emitted under: `dlock`, `resource`, `worker`, `server` or `fault`.
            pub const fn target(self) -> &'static str {
                match self { $($( Self::$variant => $target, )*)* }
            }

            /// The event of that name, if the vocabulary has it.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($( $name => Some(Self::$variant), )*)* _ => None }
            }
        }

        /// What happened: one event of the vocabulary, with its fields. Each field is described at [`Record`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(
                $(#[$doc])*
                $variant { $( #[doc = concat!("See `", stringify!($field), "` of [`Record`].")] $field: $type, )* },
            )*)*
        }

        impl Kind {
            /// The event's name.
            pub const fn name(&self) -> EventName {
                match self { $($( Self::$variant { .. } => EventName::$variant, )*)* }
            }

            /// The fields as a record, as they would be logged.
            pub fn to_record(&self) -> Record {
                let mut record = Record::new(self.name());
                match self {
                    $($( Self::$variant { $($field),* } => { $( record.$field = $field.store(); )* } )*)*
                }
                record
            }

            fn load(event: EventName, record: &mut Record) -> Result<Self, RecordError> {
                match event {
                    $($(
                        EventName::$variant => Ok(Self::$variant {
                            $( $field: Field::load(record.$field.take())
                                .ok_or(RecordError::Missing { event, field: Record::field_name(stringify!($field)) })?, )*
                        }),
                    )*)*
                }
            }
        }
    };
}

vocabulary! {
    "dlock" {
        /// A client began to acquire.
        LeaseRequested = "lease_requested" { key: Name, owner: Name, ttl_millis: Option<u64> }
        /// A client goes on acquiring under an owner token of its own, right after the `lease_not_acquired` of the one before.
        LeaseRetried = "lease_retried" { key: Name, owner: Name, ttl_millis: Option<u64> }
        /// A fair lock put the request in line.
        LeaseQueued = "lease_queued" { key: Name, owner: Name, position: u64 }
        /// The grant reached the client and was still valid.
        LeaseAcquired = "lease_acquired" { key: Name, owner: Name, token: u64, ttl_millis: Option<u64>, valid_micros: Option<u64> }
        /// The acquire ended without a grant.
        LeaseNotAcquired = "lease_not_acquired" { key: Name, owner: Name, outcome: Option<Name> }
        /// The lease was extended.
        LeaseRenewed = "lease_renewed" { key: Name, owner: Name, token: u64, valid_micros: Option<u64> }
        /// One attempt to extend the lease failed.
        LeaseRenewFailed = "lease_renew_failed" { key: Name, owner: Name, token: u64, outcome: Option<Name> }
        /// The holder learned that it must stop.
        LeaseLost = "lease_lost" { key: Name, owner: Name, token: u64, outcome: Option<Name> }
        /// The holder began to release.
        LeaseReleaseRequested = "lease_release_requested" { key: Name, owner: Name, token: u64 }
        /// The release ended.
        LeaseReleased = "lease_released" { key: Name, owner: Name, token: u64, outcome: Option<Name> }
    }
    "resource" {
        /// The resource stored a write.
        WriteAccepted = "write_accepted" { key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, version: u64, body: Option<Name> }
        /// A write came again and got its first answer; nothing was stored.
        WriteRepeated = "write_repeated" { key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, version: u64, body: Option<Name> }
        /// The resource refused a write.
        WriteRejected = "write_rejected" { key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, seen: u64, outcome: Option<Name> }
        /// The resource was read. With a token it is the fenced read, which claims the token.
        ResourceRead = "resource_read" { key: Name, owner: Option<Name>, token: Option<u64>, version: u64, seen: u64 }
        /// The resource refused a fenced read.
        ReadRejected = "read_rejected" { key: Name, owner: Option<Name>, token: u64, seen: u64, outcome: Option<Name> }
        /// The resource stored a conditional write.
        ConditionalAccepted = "conditional_accepted" { key: Name, owner: Option<Name>, expected: u64, version: u64, body: Option<Name> }
        /// A conditional write came again and got its first answer; nothing was stored.
        ConditionalRepeated = "conditional_repeated" { key: Name, owner: Option<Name>, expected: u64, version: u64, body: Option<Name> }
        /// The resource refused a conditional write: it has another version, or has seen a fencing token.
        ConditionalRejected = "conditional_rejected" { key: Name, owner: Option<Name>, expected: u64, version: Option<u64>, seen: Option<u64>, outcome: Option<Name> }
    }
    "worker" {
        /// The worker believes that it holds the lock and starts what the lock guards.
        SectionEntered = "section_entered" { key: Name, owner: Name, token: u64 }
        /// The worker is done with it, or knows that it lost the lock.
        SectionLeft = "section_left" { key: Name, owner: Name, token: u64, outcome: Option<Name> }
        /// The worker reached a step of its work.
        WorkerStep = "worker_step" { step: Name, key: Option<Name>, owner: Option<Name> }
        /// The worker sent a write to the resource.
        WriteSent = "write_sent" { key: Name, owner: Option<Name>, token: u64, seq: Option<u64> }
        /// The worker got its answer, or none.
        WriteAnswered = "write_answered" { key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, outcome: Option<Name> }
        /// The worker sent a conditional write to the resource.
        ConditionalSent = "conditional_sent" { key: Name, owner: Option<Name>, expected: u64 }
        /// The worker got its answer, or none.
        ConditionalAnswered = "conditional_answered" { key: Name, owner: Option<Name>, expected: u64, outcome: Option<Name> }
        /// The worker is done with a read-modify-write by conditional writes, or gave it up.
        UpdateEnded = "update_ended" { key: Name, owner: Option<Name>, outcome: Option<Name> }
    }
    "server" {
        /// A lock server stored an owner under a key that had none.
        KeyGranted = "key_granted" { key: Name, owner: Name, token: Option<u64>, ttl_millis: Option<u64>, client: Name }
        /// A lock server moved the end of a key's time to live.
        KeyExtended = "key_extended" { key: Name, owner: Name, ttl_millis: Option<u64>, client: Name }
        /// A lock server deleted a key for a client; `owner` is what the key held.
        KeyDeleted = "key_deleted" { key: Name, owner: Name, client: Name }
        /// A lock server dropped a key whose time to live was over; `owner` is what the key held.
        KeyExpired = "key_expired" { key: Name, owner: Option<Name> }
        /// A fair lock server dropped a waiter's place in line: its session ended, or it gave up.
        WaiterGone = "waiter_gone" { key: Name, owner: Name }
        /// A lock server went away.
        ServerStopped = "server_stopped" { detail: Option<Name> }
        /// A lock server came up.
        ServerStarted = "server_started" { detail: Option<Name> }
        /// A replica took over.
        ServerPromoted = "server_promoted" { detail: Option<Name> }
    }
    "fault" {
        /// A fault began.
        FaultApplied = "fault_applied" { detail: Name }
        /// A fault ended.
        FaultHealed = "fault_healed" { detail: Name }
        /// The process that the event is stamped with died: whatever it was doing is over.
        ProcessCrashed = "process_crashed" { detail: Option<Name> }
    }
}

impl Kind {
    /// The event in `record`, which is empty from then on and can be filled again: where events are many, moving whole
    /// records would cost as much as reading them.
    ///
    /// # Errors
    ///
    /// As for [`Kind::try_from`].
    pub fn take_from(record: &mut Record) -> Result<Self, RecordError> {
        let kind = record.event().and_then(|event| Self::load(event, record));
        *record = Record::default();
        kind
    }
}

impl TryFrom<Record> for Kind {
    type Error = RecordError;

    /// # Errors
    ///
    /// [`RecordError`] for an event without a name, with a name that the vocabulary lacks, or without one of its fields.
    /// Fields that the event does not have are ignored.
    fn try_from(mut record: Record) -> Result<Self, RecordError> {
        Self::take_from(&mut record)
    }
}
