//! Translates etcd's refusals into errors of a lock. Texts and codes: etcd's `api/v3rpc/rpctypes/error.go`.

use std::error::Error as _;

use etcd_client::Error;
use tonic::{Code, Status};

use crate::error::BackendError;

/// etcd-client's error for a keepalive that was answered with a time to live of 0. The server's own text ends
/// with it.
pub(super) const LEASE_NOT_FOUND: &str = "lease not found";

/// A proposal that a member without a leader gave up.
const DEADLINE: &str = "context deadline exceeded";

/// Translates `error`.
pub(super) fn meaning(error: Error) -> BackendError {
    match error {
        Error::GRpcStatus(status) => refusal(&status),
        Error::LeaseKeepAliveError(reason) if reason == LEASE_NOT_FOUND => {
            BackendError::SessionLost { reported: true }
        }
        error => BackendError::Disconnected { reason: error.to_string() },
    }
}

fn refusal(status: &Status) -> BackendError {
    let message = status.message();
    // A status that has a source was made by this side, of a connection that failed. The last source says
    // why: those between repeat "transport error".
    if let Some(mut cause) = status.source() {
        while let Some(source) = cause.source() {
            cause = source;
        }
        return BackendError::Disconnected { reason: format!("{message}: {cause}") };
    }
    if message.contains(LEASE_NOT_FOUND) {
        return BackendError::SessionLost { reported: true };
    }
    if status.code() == Code::Unavailable || message == DEADLINE {
        return BackendError::Isolated { message: message.to_owned() };
    }
    let passing = !matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
    );
    BackendError::Refused { message: message.to_owned(), passing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: Code, text: &str) -> BackendError {
        meaning(Error::GRpcStatus(Status::new(code, text)))
    }

    #[test]
    fn each_refusal_has_its_own_kind() {
        let lost = BackendError::SessionLost { reported: true };
        assert_eq!(of(Code::NotFound, "etcdserver: requested lease not found"), lost);
        assert_eq!(meaning(Error::LeaseKeepAliveError("lease not found".into())), lost);
        for (code, text) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unknown, "context deadline exceeded"),
        ] {
            assert!(matches!(of(code, text), BackendError::Isolated { .. }), "{text}");
        }
        let refused = of(Code::PermissionDenied, "etcdserver: permission denied");
        assert!(matches!(refused, BackendError::Refused { passing: false, .. }));
        let full = of(Code::ResourceExhausted, "etcdserver: too many requests");
        assert!(matches!(full, BackendError::Refused { passing: true, .. }));
    }
}
