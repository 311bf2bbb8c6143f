//! The types can be sent and shared between threads as tokio's own can: other libraries rely on it.

use std::panic::{RefUnwindSafe, UnwindSafe};

fn send_and_sync<T: Send + Sync>() {}
fn send<T: Send>() {}
/// Takes a future, which it does not poll.
fn shared<F: Future + Send + Sync>(_: F) {}
fn unpin<T: Unpin>() {}
fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}

/// As in tokio's own tests/async_send_sync.rs.
#[test]
fn types_are_send_and_sync_as_tokios_own() {
    use tokio::io::unix::AsyncFd;
    use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket, tcp};
    use tokio::net::{UnixDatagram, UnixListener, UnixSocket, UnixStream, unix};
    use tokio::process::{Child, Command};
    use tokio::runtime::{Builder, Handle, LocalRuntime, Runtime, RuntimeMetrics};
    use tokio::task::{AbortHandle, JoinHandle, JoinSet};
    use tokio::time::{Instant, Interval, Sleep, Timeout};

    send_and_sync::<TcpListener>();
    send_and_sync::<TcpSocket>();
    send_and_sync::<TcpStream>();
    send_and_sync::<tcp::OwnedReadHalf>();
    send_and_sync::<tcp::OwnedWriteHalf>();
    send_and_sync::<tcp::ReadHalf<'_>>();
    send_and_sync::<tcp::WriteHalf<'_>>();
    send_and_sync::<UnixListener>();
    send_and_sync::<UnixStream>();
    send_and_sync::<unix::OwnedReadHalf>();
    send_and_sync::<unix::OwnedWriteHalf>();
    send_and_sync::<Builder>();
    send_and_sync::<Handle>();
    send_and_sync::<Runtime>();
    send_and_sync::<AbortHandle>();
    send_and_sync::<JoinHandle<u8>>();
    send_and_sync::<JoinSet<u8>>();
    send_and_sync::<Instant>();
    send_and_sync::<Interval>();
    send_and_sync::<Sleep>();
    send_and_sync::<Timeout<std::future::Ready<u8>>>();
    send::<tokio::io::Stdout>();
    send_and_sync::<UdpSocket>();
    send_and_sync::<UnixDatagram>();
    send_and_sync::<UnixSocket>();
    send_and_sync::<unix::SocketAddr>();
    send_and_sync::<unix::pipe::OpenOptions>();
    send_and_sync::<unix::pipe::Receiver>();
    send_and_sync::<unix::pipe::Sender>();
    send_and_sync::<AsyncFd<TcpStream>>();
    send_and_sync::<Child>();
    send_and_sync::<Command>();
    send_and_sync::<RuntimeMetrics>();
    shared(TcpListener::bind("a:1"));
    shared(TcpStream::connect("a:1"));
    shared(UdpSocket::bind("a:1"));
    shared(UnixStream::connect("/a"));
    shared(tokio::net::lookup_host("a:1"));
    unpin::<TcpStream>();
    unpin::<Interval>();
    unpin::<JoinSet<u8>>();
    unwind_safe::<Handle>();
    unwind_safe::<Runtime>();
    unwind_safe::<LocalRuntime>();
    unwind_safe::<TcpListener>();
    unwind_safe::<TcpStream>();
    unwind_safe::<UdpSocket>();
    unwind_safe::<UnixDatagram>();
    unwind_safe::<UnixListener>();
    unwind_safe::<UnixStream>();
}
