//! The errors of etcd: gRPC codes and texts as in `api/v3rpc/rpctypes/error.go`.

use tonic::{Code, Status};

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    EmptyKey,
    KeyNotFound,
    ValueProvided,
    LeaseProvided,
    TooManyOps,
    DuplicateKey,
    Compacted,
    FutureRevision,
    LeaseNotFound,
    LeaseExists,
    LeaseTtlTooLarge,
    Timeout,
    /// A proposal that was made while the member knew no leader.
    Deadline,
    NoLeader,
    NotLeader,
    BadTransferee,
    AuthNotEnabled,
}

impl Refusal {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::EmptyKey => "etcdserver: key is not provided",
            Self::KeyNotFound => "etcdserver: key not found",
            Self::ValueProvided => "etcdserver: value is provided",
            Self::LeaseProvided => "etcdserver: lease is provided",
            Self::TooManyOps => "etcdserver: too many operations in txn request",
            Self::DuplicateKey => "etcdserver: duplicate key given in txn request",
            Self::Compacted => "etcdserver: mvcc: required revision has been compacted",
            Self::FutureRevision => "etcdserver: mvcc: required revision is a future revision",
            Self::LeaseNotFound => "etcdserver: requested lease not found",
            Self::LeaseExists => "etcdserver: lease already exists",
            Self::LeaseTtlTooLarge => "etcdserver: too large lease TTL",
            Self::Timeout => "etcdserver: request timed out",
            Self::Deadline => "context deadline exceeded",
            Self::NoLeader => "etcdserver: no leader",
            Self::NotLeader => "etcdserver: not leader",
            Self::BadTransferee => "etcdserver: bad leader transferee",
            Self::AuthNotEnabled => "etcdserver: authentication is not enabled",
        }
    }

    const fn code(self) -> Code {
        match self {
            Self::EmptyKey
            | Self::KeyNotFound
            | Self::ValueProvided
            | Self::LeaseProvided
            | Self::TooManyOps
            | Self::DuplicateKey => Code::InvalidArgument,
            Self::Compacted | Self::FutureRevision | Self::LeaseTtlTooLarge => Code::OutOfRange,
            Self::LeaseNotFound => Code::NotFound,
            Self::LeaseExists | Self::NotLeader | Self::BadTransferee | Self::AuthNotEnabled => {
                Code::FailedPrecondition
            }
            Self::Timeout | Self::NoLeader => Code::Unavailable,
            Self::Deadline => Code::Unknown,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.text())
    }
}
