//! ZooKeeper's wire format, both ends of it: frames with a length in front, records in jute, xids that pair
//! replies with requests.
//!
//! `jute.rs`: numbers, texts and lists as bytes; `frame.rs`: a byte stream cut into frames; `message.rs`:
//! what opens a session and what every request and reply begins with; `request.rs`, `reply.rs`: what follows,
//! for each operation.
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
    ConnectRequest, ConnectResponse, EventKind, PASSWORD_BYTES, ReplyHeader, Stat, WatcherEvent, xid,
};
pub use reply::Reply;
pub use request::{CreateMode, Op, Request};

/// The codes that a reply header's `err` may hold.
///
/// Source: `KeeperException.Code`.
pub mod code {
    /// The operation was done.
    pub const OK: i32 = 0;
    /// The server can't read the request.
    pub const MARSHALLING_ERROR: i32 = -5;
    /// The server lacks the operation.
    pub const UNIMPLEMENTED: i32 = -6;
    /// A path or a flag makes no sense.
    pub const BAD_ARGUMENTS: i32 = -8;
    /// No node has the path, or its parent is missing.
    pub const NO_NODE: i32 = -101;
    /// The node's access list forbids it.
    pub const NO_AUTH: i32 = -102;
    /// The node's version is not the one that was named.
    pub const BAD_VERSION: i32 = -103;
    /// The parent is ephemeral.
    pub const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
    /// The path is taken.
    pub const NODE_EXISTS: i32 = -110;
    /// The node has children.
    pub const NOT_EMPTY: i32 = -111;
    /// The session is over.
    pub const SESSION_EXPIRED: i32 = -112;
    /// The access list makes no sense.
    pub const INVALID_ACL: i32 = -114;
    /// The login is not accepted, or not of a kind that the server knows.
    pub const AUTH_FAILED: i32 = -115;
    /// The session goes on at another server.
    pub const SESSION_MOVED: i32 = -118;
}
