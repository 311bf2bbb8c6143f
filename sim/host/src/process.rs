//! The outside world of a simulated process: clock, tasks, network, files and signals, for code that replaces
//! a runtime such as tokio.
//!
//! Each object belongs to one life of a process. After a crash it does nothing, and its calls fail.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::files::Files;
use crate::signals::Signals;

/// A future in a box.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A sleep in a box. It may be shared, since tokio's can.
pub type BoxSleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A process of a simulated world, in one of its lives.
///
/// A call that would have to wait takes a waker, fails with [`io::ErrorKind::WouldBlock`], and wakes it when
/// the call is worth another try. Without a waker it only fails.
pub trait Process: Send + Sync {
    /// Returns its name in the world.
    fn name(&self) -> String;

    /// Returns the time on its monotonic clock, in nanoseconds since an origin of its own.
    fn now(&self) -> u64;

    /// Completes once [`Process::now`] has reached `nanos`.
    fn sleep_until(&self, nanos: u64) -> BoxSleep;

    /// Runs `task` beside the caller. It ends with this life of the process.
    fn spawn(&self, task: BoxFuture<()>);

    /// Calls `f`, which may block by [`Process::block_on`]. Other tasks run while it does.
    fn blocking(&self, f: Box<dyn FnOnce() + Send>) -> BoxFuture<()>;

    /// Polls until it is ready, within [`Process::blocking`]. Fails elsewhere, where the caller can't wait.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) -> io::Result<()>;

    /// Returns 64 random bits of the process's own stream.
    fn random(&self) -> u64;

    /// Looks up the addresses of `host`: the name of a process, an alias, `localhost`, or an address. Fails
    /// with [`io::ErrorKind::NotFound`] if the world has no such host.
    fn look_up(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>>;

    /// Connects to `address`. Waits while the link is cut. Fails with
    /// [`io::ErrorKind::ConnectionRefused`] if nobody listens there, and with
    /// [`io::ErrorKind::HostUnreachable`] if the world has no such host.
    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Arc<dyn Stream>>>;

    /// Listens on `address`, one of its own; port 0 picks a free one. Fails with
    /// [`io::ErrorKind::AddrInUse`] if the process listens there already, and with
    /// [`io::ErrorKind::AddrNotAvailable`] if the address is another host's.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Binds a socket for datagrams to `address`, one of its own; port 0 picks a free one. Fails with
    /// [`io::ErrorKind::AddrInUse`] if a socket for datagrams of the process has the port, and with
    /// [`io::ErrorKind::AddrNotAvailable`] if the address is another host's.
    fn bind_datagrams(&self, address: SocketAddr) -> io::Result<Box<dyn Datagrams>>;

    /// Returns the files on the disk of its machine.
    fn files(&self) -> Arc<dyn Files>;

    /// Listens for the signal of this number from now on, and for the rest of this life: it no longer ends
    /// the process.
    fn signals(&self, number: i32) -> Box<dyn Signals>;

    /// Ends the run with an error: the code has called `what`, which can't be simulated. `instead` says what
    /// to use. Returns the error for the caller.
    fn refuse(&self, what: &'static str, instead: &'static str) -> io::Error;
}

/// One end of a connection. Dropping it closes it.
pub trait Stream: Send + Sync {
    /// Returns the address of this end.
    fn local(&self) -> SocketAddr;

    /// Returns the address of the other end.
    fn peer(&self) -> SocketAddr;

    /// Reads what has arrived, up to the length of `bytes`; 0 at the end.
    fn read(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize>;

    /// Copies what has arrived, and leaves it to be read.
    fn peek(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize>;

    /// Sends `bytes`. Returns the number of those that were taken.
    fn write(&self, waker: Option<&Waker>, bytes: &[u8]) -> io::Result<usize>;

    /// Succeeds if a write would take at least one byte, or fail.
    fn writable(&self, waker: Option<&Waker>) -> io::Result<()>;

    /// Closes the sending direction: the other end reads all bytes, then the end.
    fn shut_down(&self, waker: Option<&Waker>) -> io::Result<()>;
}

/// A listening socket. Dropping it closes it.
pub trait Listener: Send + Sync {
    /// Returns its address.
    fn local(&self) -> SocketAddr;

    /// Accepts a connection.
    fn accept(&self, waker: Option<&Waker>) -> io::Result<Arc<dyn Stream>>;
}

/// A socket for datagrams, as UDP has them. Dropping it closes it.
///
/// A datagram arrives as a whole. It may be lost, arrive twice, or be overtaken by later ones; its sender is
/// not told.
pub trait Datagrams: Send + Sync {
    /// Returns its address.
    fn local(&self) -> SocketAddr;

    /// Takes datagrams of `peer` only, from now on. Those of others that have arrived stay. Fails with
    /// [`io::ErrorKind::HostUnreachable`] if the world has no such host.
    fn connect(&self, peer: SocketAddr) -> io::Result<()>;

    /// Sends `bytes` as one datagram to `to`. Returns their number. Fails with
    /// [`io::ErrorKind::InvalidInput`] if they are more than 65,507, and with
    /// [`io::ErrorKind::HostUnreachable`] if the world has no such host.
    fn send_to(&self, waker: Option<&Waker>, bytes: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Takes the first datagram that has arrived, and copies as much of it as fits into `bytes`; the rest is
    /// lost. Returns the number of copied bytes and the sender's address.
    fn receive_from(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Copies the first datagram as [`Datagrams::receive_from`] does, and leaves it to be received.
    fn peek_from(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)>;
}
