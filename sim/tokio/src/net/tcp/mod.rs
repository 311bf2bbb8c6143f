//! TCP.

mod listener;
mod socket;
mod split;
mod split_owned;
mod stream;

pub use self::listener::TcpListener;
pub use self::socket::TcpSocket;
pub use self::split::{ReadHalf, WriteHalf};
pub use self::split_owned::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use self::stream::TcpStream;
