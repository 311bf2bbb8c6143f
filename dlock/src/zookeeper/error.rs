//! The errors of requests to an ensemble, as the lock reports them.

use dlock_runtime::Runtime;
use dlock_zookeeper::Error;

use super::sessions::Sessions;
use crate::error::BackendError;

/// The codes of a server that is overloaded, or has lost its leader.
///
/// Source: `KeeperException.Code`: CONNECTIONLOSS, OPERATIONTIMEOUT, REQUESTTIMEOUT, THROTTLEDOP.
const PASSING: [i32; 4] = [-4, -7, -122, -127];

impl<R: Runtime> Sessions<R> {
    /// Returns the error of a request to the ensemble, as the lock reports it.
    pub(super) fn failure(&self, error: Error) -> BackendError {
        match error {
            Error::NotSent { reason } => {
                BackendError::Unreachable { address: self.options().servers.join(","), reason }
            }
            Error::NoAnswer => BackendError::NoAnswer,
            Error::SessionExpired | Error::Closed => BackendError::SessionLost { reported: true },
            Error::ConnectionLoss | Error::SessionMoved | Error::Protocol(_) => {
                BackendError::Disconnected { reason: error.to_string() }
            }
            error => BackendError::Refused { passing: may_pass(&error), message: error.to_string() },
        }
    }
}

/// Returns whether a request that a server has refused may succeed later.
fn may_pass(error: &Error) -> bool {
    match error {
        // Another client works on the same nodes.
        Error::NoNode { .. }
        | Error::NodeExists { .. }
        | Error::NotEmpty { .. }
        | Error::BadVersion { .. } => true,
        Error::Refused { code } => PASSING.contains(code),
        _ => false,
    }
}
