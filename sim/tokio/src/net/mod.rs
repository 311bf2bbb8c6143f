//! `tokio::net` on the links of the world: hosts are processes, reached by their names.

mod addr;
mod connection;
mod datagram;
mod halves;
mod placeholder;
mod socket;
pub mod tcp;
mod udp;
#[cfg(unix)]
pub mod unix;

pub use self::addr::{ToSocketAddrs, lookup_host};
pub use self::tcp::{TcpListener, TcpSocket, TcpStream};
pub use self::udp::UdpSocket;
#[cfg(unix)]
pub use self::unix::{UnixDatagram, UnixListener, UnixSocket, UnixStream};
