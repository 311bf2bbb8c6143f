//! ZooKeeper's wire format, for both ends: frames with a length prefix, records in jute, and xids that match
//! replies to requests.
//!
//! `jute.rs` encodes numbers, texts and lists; `frame.rs` splits a byte stream into frames; `message.rs` has
//! the login, the headers and events; `request.rs` and `reply.rs` have the bodies of each operation.
//!
//! Source: `zookeeper.jute` and `ZooDefs.java` of ZooKeeper 3.8. All numbers are big-endian.

mod frame;
mod jute;
mod message;
mod reply;
mod request;

pub use frame::{FRAME_BYTES_MAX, Frames, REQUEST_BYTES_MAX};
pub use jute::{Reader, WireError, Writer};
pub use message::{
    ConnectRequest, ConnectResponse, EventKind, Login, PASSWORD_BYTES, ReplyHeader, Stat, WatcherEvent, xid,
};
pub use reply::Reply;
pub use request::{Access, CreateMode, Op, Request};

/// The codes of a reply header's `err`.
///
/// Source: `KeeperException.Code`.
pub mod code {
    /// Success.
    pub const OK: i32 = 0;
    /// The server can't read the request.
    pub const MARSHALLING_ERROR: i32 = -5;
    /// The server does not implement the operation.
    pub const UNIMPLEMENTED: i32 = -6;
    /// A path or a flag is invalid.
    pub const BAD_ARGUMENTS: i32 = -8;
    /// No node has the path, or its parent is missing.
    pub const NO_NODE: i32 = -101;
    /// The node's access list forbids it.
    pub const NO_AUTH: i32 = -102;
    /// The node's version is not the expected one.
    pub const BAD_VERSION: i32 = -103;
    /// The parent is ephemeral.
    pub const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
    /// The node exists.
    pub const NODE_EXISTS: i32 = -110;
    /// The node has children.
    pub const NOT_EMPTY: i32 = -111;
    /// The session is over.
    pub const SESSION_EXPIRED: i32 = -112;
    /// The login failed, or its scheme is unknown to the server.
    pub const AUTH_FAILED: i32 = -115;
    /// The session has moved to another server.
    pub const SESSION_MOVED: i32 = -118;
}
