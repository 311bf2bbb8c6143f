//! Unix sockets, within the host of a process. They have no latency and lose nothing.

mod address;
mod bound;
mod datagram;
mod direction;
mod ends;
mod listener;
pub mod pipe;
mod queue;
mod socket;
mod split;
mod stream;

pub use real_tokio::net::unix::{gid_t, pid_t, uid_t};

pub use self::address::SocketAddr;
pub use self::datagram::UnixDatagram;
pub use self::listener::UnixListener;
pub use self::socket::UnixSocket;
pub use self::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use self::stream::{UCred, UnixStream};
