//! The errors of requests.

use super::wire::{WireError, code};

/// Why a request to ZooKeeper failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection was open in time: the request was not sent and never will be.
    #[error(
        "no connection to ZooKeeper in time ({reason}); \
         check that a majority of its servers runs and can be reached"
    )]
    NotSent {
        /// The error of the last attempt to connect.
        reason: String,
    },
    /// The request was sent and not answered in time. It may have been executed, or may still be.
    #[error(
        "ZooKeeper did not answer in time; the request may have been executed: look before you send it again"
    )]
    NoAnswer,
    /// The connection broke before the answer arrived. The request may have been executed.
    #[error(
        "the connection to ZooKeeper broke before its answer; \
         the request may have been executed: sync and look"
    )]
    ConnectionLoss,
    /// The session is over, and its ephemeral nodes are deleted.
    #[error("the ZooKeeper session has expired, its ephemeral nodes are gone: open another client")]
    SessionExpired,
    /// The session was closed by this client.
    #[error("the ZooKeeper session was closed: open another client")]
    Closed,
    /// The session continues at another server; the request was not executed.
    #[error("the ZooKeeper session has moved to another server; the request was not executed, send it again")]
    SessionMoved,
    /// No node has the path; for a create, its parent is missing.
    #[error("ZooKeeper has no node {path}, or no parent for it: create the parent first")]
    NoNode {
        /// The path of the request.
        path: String,
    },
    /// The node exists already.
    #[error("the ZooKeeper node {path} exists already: read it, or create another")]
    NodeExists {
        /// The path of the request.
        path: String,
    },
    /// The node has children.
    #[error("the ZooKeeper node {path} has children: delete them first")]
    NotEmpty {
        /// The path of the request.
        path: String,
    },
    /// The node's data has changed.
    #[error("the ZooKeeper node {path} does not have the expected version: read it again")]
    BadVersion {
        /// The path of the request.
        path: String,
    },
    /// The parent is ephemeral.
    #[error(
        "{path} would be the child of an ephemeral ZooKeeper node, which can't have any: \
         choose another parent"
    )]
    NoChildrenForEphemerals {
        /// The path of the request.
        path: String,
    },
    /// The path is invalid.
    #[error(
        "ZooKeeper refuses the path {path}: \
         it must begin with `/`, not end with it, and hold no control characters"
    )]
    BadArguments {
        /// The path of the request.
        path: String,
    },
    /// The lock's queue can't number further entries.
    #[error(
        "the ZooKeeper queue {path} has numbered 2147483647 entries and can't number more; it is deleted \
         with its last entry, and then counts anew: try again when the lock has been free for a moment"
    )]
    QueueUsedUp {
        /// The path of the queue.
        path: String,
    },
    /// The node's access list forbids the request.
    #[error(
        "ZooKeeper's access list of {path} forbids this: \
         grant the right to `world:anyone`, or use another path"
    )]
    NoAuth {
        /// The path of the request.
        path: String,
    },
    /// Another error of the server.
    #[error("ZooKeeper refused the request with error {code}: see its KeeperException.Code")]
    Refused {
        /// Its number.
        code: i32,
    },
    /// The server violated the protocol; the connection was closed.
    #[error("the ZooKeeper server violated the protocol: {0}")]
    Protocol(#[from] WireError),
}

impl Error {
    /// Returns whether the request may have been executed, or may still be.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::NoAnswer | Self::ConnectionLoss | Self::Protocol(_))
    }

    /// Returns whether the request was certainly not executed and never will be.
    pub const fn is_refusal(&self) -> bool {
        // Other codes may come from servers that failed half-way.
        !self.is_unknown() && !matches!(self, Self::Refused { .. } | Self::QueueUsedUp { .. })
    }

    /// Returns whether the same request of the same session may succeed later.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::NoAnswer | Self::ConnectionLoss | Self::SessionMoved)
    }

    /// Returns whether the session is over.
    pub const fn is_session_over(&self) -> bool {
        matches!(self, Self::SessionExpired | Self::Closed)
    }

    /// Converts the code of a reply to a request about `path`.
    pub(super) fn of(code: i32, path: &str) -> Self {
        let path = path.to_owned();
        match code {
            code::NO_NODE => Self::NoNode { path },
            code::NODE_EXISTS => Self::NodeExists { path },
            code::NOT_EMPTY => Self::NotEmpty { path },
            code::BAD_VERSION => Self::BadVersion { path },
            code::NO_CHILDREN_FOR_EPHEMERALS => Self::NoChildrenForEphemerals { path },
            code::BAD_ARGUMENTS => Self::BadArguments { path },
            code::NO_AUTH => Self::NoAuth { path },
            code::SESSION_EXPIRED => Self::SessionExpired,
            code::SESSION_MOVED => Self::SessionMoved,
            code => Self::Refused { code },
        }
    }
}
