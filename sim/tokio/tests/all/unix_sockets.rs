//! Unix sockets that are bound before they listen or connect, and addresses of all kinds.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::path::Path;

use sim::Sim;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixDatagram, UnixListener, UnixSocket, UnixStream};

const PATH: &str = "/run/app.sock";

/// Runs a process `a`, which must get to the end of `main`.
fn run<F: Future<Output = ()> + Send + 'static>(main: impl Fn() -> F + Send + Sync + 'static) {
    let mut sim = Sim::new(7);
    sim.process("a", move |_| {
        let main = main();
        async move {
            main.await;
            sim::point("done");
        }
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("done"), "{trace}");
}

fn bound(path: &str) -> UnixSocket {
    let socket = UnixSocket::new_stream().unwrap();
    socket.bind(path).unwrap();
    socket
}

#[test]
fn a_bound_client_is_known_to_the_listener() {
    run(|| async {
        let listener = bound(PATH).listen(1024).unwrap();
        let mut client = bound("/run/peer.sock").connect(PATH).await.unwrap();
        let (mut server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.as_pathname(), Some(Path::new("/run/peer.sock")));
        assert_eq!(server.peer_addr().unwrap().as_pathname(), Some(Path::new("/run/peer.sock")));
        assert_eq!(client.local_addr().unwrap().as_pathname(), Some(Path::new("/run/peer.sock")));
        client.write_all(b"hello").await.unwrap();
        drop(client);
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
    });
}

#[test]
fn an_address_is_taken_until_its_socket_is_dropped() {
    run(|| async {
        let kind = |path| UnixSocket::new_stream().unwrap().bind(path).unwrap_err().kind();
        let _listener = UnixListener::bind(PATH).unwrap();
        let client = bound("/run/peer.sock");
        assert_eq!((kind(PATH), kind("/run/peer.sock")), (ErrorKind::AddrInUse, ErrorKind::AddrInUse));
        let client = client.connect(PATH).await.unwrap();
        let (read, write) = client.into_split();
        drop(read);
        assert_eq!(kind("/run/peer.sock"), ErrorKind::AddrInUse);
        drop(write);
        drop(bound("/run/peer.sock"));
        drop(bound("/run/peer.sock"));
    });
}

#[test]
fn a_bound_socket_refuses_connections_until_it_listens() {
    run(|| async {
        let socket = bound(PATH);
        assert_eq!(UnixStream::connect(PATH).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let _listener = socket.listen(1).unwrap();
        UnixStream::connect(PATH).await.unwrap();
        let without = UnixSocket::new_stream().unwrap();
        assert_eq!(without.listen(1).unwrap_err().kind(), ErrorKind::InvalidInput);
        let twice = bound("/run/peer.sock");
        assert_eq!(twice.bind("/run/other.sock").unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_socket_becomes_one_for_datagrams() {
    run(|| async {
        let server = UnixSocket::new_datagram().unwrap();
        server.bind(PATH).unwrap();
        assert_eq!(UnixDatagram::bind(PATH).unwrap_err().kind(), ErrorKind::AddrInUse);
        let server = server.datagram().unwrap();
        let client = UnixSocket::new_datagram().unwrap().datagram().unwrap();
        client.connect(PATH).unwrap();
        client.send(b"echo").await.unwrap();
        let mut bytes = [0; 16];
        let (length, from) = server.recv_from(&mut bytes).await.unwrap();
        assert!(from.is_unnamed());
        assert_eq!(&bytes[..length], b"echo");
    });
}

#[test]
fn a_socket_of_the_other_kind_is_refused_as_by_tokio() {
    run(|| async {
        let datagram = || UnixSocket::new_datagram().unwrap();
        let problems = [
            datagram().connect(PATH).await.unwrap_err(),
            datagram().listen(1).unwrap_err(),
            UnixSocket::new_stream().unwrap().datagram().unwrap_err(),
        ];
        assert_eq!(
            problems.map(|problem| problem.to_string()),
            [
                "connect cannot be called on a datagram socket",
                "listen cannot be called on a datagram socket",
                "datagram cannot be called on a stream socket"
            ]
        );
    });
}

#[test]
fn a_socket_passes_through_its_descriptor() {
    run(|| async {
        let _listener = UnixListener::bind(PATH).unwrap();
        let (stream, datagram) = (UnixSocket::new_stream().unwrap(), UnixSocket::new_datagram().unwrap());
        assert!(stream.as_raw_fd() > 2);
        #[allow(unsafe_code, reason = "the descriptors are given away")]
        // SAFETY: nothing else closes them.
        let (stream, datagram) = unsafe {
            (UnixSocket::from_raw_fd(stream.into_raw_fd()), UnixSocket::from_raw_fd(datagram.into_raw_fd()))
        };
        assert!(datagram.datagram().is_ok());
        assert!(stream.connect(PATH).await.unwrap().as_raw_fd() > 2);
    });
}

#[test]
fn an_address_is_a_path_or_an_abstract_name() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr as StdSocketAddr;

    run(|| async {
        let listener = UnixListener::bind("\0app").unwrap();
        let local = listener.local_addr().unwrap();
        assert_eq!(local.as_abstract_name(), Some(&b"app"[..]));
        assert!(local.as_pathname().is_none() && !local.is_unnamed());
        let named = StdSocketAddr::from_abstract_name("app").unwrap();
        let stream = UnixStream::connect_addr(&named.into()).await.unwrap();
        assert_eq!(StdSocketAddr::from(stream.peer_addr().unwrap()).as_abstract_name(), Some(&b"app"[..]));
        let path = StdSocketAddr::from_pathname(PATH).unwrap();
        let listener = UnixListener::bind_addr(&path.clone().into()).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(Path::new(PATH)));
        assert_eq!(UnixListener::bind_addr(&path.into()).unwrap_err().kind(), ErrorKind::AddrInUse);
        let unnamed = UnixStream::pair().unwrap().0.local_addr().unwrap();
        assert_eq!(UnixListener::bind_addr(&unnamed).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(UnixListener::bind("x".repeat(108)).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}
