//! Unix sockets within the host of a process: streams and datagrams in memory.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sim::faults::{Crash, Fault, Trigger};
use sim::{Sim, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{UnixDatagram, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

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

#[test]
fn a_client_and_a_listener_talk() {
    run(|| async {
        let listener = UnixListener::bind(PATH).unwrap();
        assert_eq!(UnixListener::bind(PATH).unwrap_err().kind(), ErrorKind::AddrInUse);
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        });
        let stream = UnixStream::connect(PATH).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap().as_pathname(), Some(Path::new(PATH)));
        assert!(stream.local_addr().unwrap().is_unnamed());
        let (mut read, mut write) = stream.into_split();
        write.write_all(b"hello").await.unwrap();
        write.shutdown().await.unwrap();
        let mut answer = String::new();
        read.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "hello");
        server.await.unwrap();
        assert_eq!(UnixStream::connect(PATH).await.unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_writer_waits_while_the_pipe_is_full() {
    run(|| async {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let writer = tokio::spawn(async move {
            one.write_all(&vec![7; 1_000_000]).await.unwrap();
        });
        sleep(Duration::from_millis(10)).await;
        assert!(!writer.is_finished());
        let mut bytes = Vec::new();
        other.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes.len(), 1_000_000);
        writer.await.unwrap();
        assert_eq!(other.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_full_connection_is_writable_once_it_is_read() {
    run(|| async {
        let (one, mut other) = UnixStream::pair().unwrap();
        while one.try_write(&[1; 10_000]).is_ok() {}
        assert!(timeout(Duration::from_millis(1), one.writable()).await.is_err());
        let both = Interest::READABLE | Interest::WRITABLE;
        assert!(timeout(Duration::from_millis(1), one.ready(both)).await.is_err());
        let writer = tokio::spawn(async move {
            one.async_io(Interest::WRITABLE, || one.try_write(&[2])).await.unwrap();
            one
        });
        sleep(Duration::from_millis(1)).await;
        assert!(!writer.is_finished());
        other.read_exact(&mut [0]).await.unwrap();
        let one = writer.await.unwrap();
        assert_eq!(one.try_write(&[3]).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(other);
        assert!(one.ready(both).await.unwrap().is_writable());
    });
}

#[test]
fn hosts_have_sockets_of_their_own() {
    let mut sim = Sim::new(7);
    sim.service("b", |_| async {
        let _listener = UnixListener::bind(PATH).unwrap();
        let _socket = UnixDatagram::bind("/run/log.sock").unwrap();
        std::future::pending::<()>().await;
    });
    sim.process("a", |_| async {
        sleep(Duration::from_millis(10)).await;
        let stream = UnixStream::connect(PATH).await.unwrap_err();
        let socket = UnixDatagram::unbound().unwrap();
        let datagram = socket.send_to(b"x", "/run/log.sock").await.unwrap_err();
        sim::point(&format!("{:?} {:?}", stream.kind(), datagram.kind()));
    });
    assert!(sim.run().unwrap().trace().contains("NotFound NotFound"));
}

#[test]
fn a_crash_closes_all_sockets() {
    let lives = Arc::new(AtomicU32::new(0));
    let life = Arc::clone(&lives);
    let mut sim = Sim::new(7);
    sim.process("a", move |_| {
        let is_first = life.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let _listener = UnixListener::bind(PATH).unwrap();
            let _socket = UnixDatagram::bind("/run/log.sock").unwrap();
            if is_first {
                std::future::pending::<()>().await;
            }
        }
    });
    let crash = Crash { restart_after: Some(Span::from_secs(1)), ..Crash::of("a") };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(100)), crash));
    sim.run().unwrap();
    assert_eq!(lives.load(Ordering::Relaxed), 2);
}

#[test]
fn datagrams_reach_a_path() {
    run(|| async {
        let server = UnixDatagram::bind(PATH).unwrap();
        assert_eq!(UnixDatagram::bind(PATH).unwrap_err().kind(), ErrorKind::AddrInUse);
        let client = UnixDatagram::bind("/run/client.sock").unwrap();
        client.send_to(b"question", PATH).await.unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"nameless", PATH).await.unwrap();
        let mut bytes = [0; 64];
        let (length, from) = server.recv_from(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..length], b"question");
        server.send_to(b"answer", from.as_pathname().unwrap()).await.unwrap();
        assert!(server.recv_from(&mut bytes).await.unwrap().1.is_unnamed());
        client.connect(PATH).unwrap();
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(Path::new(PATH)));
        let mut grown = Vec::new();
        assert_eq!(client.recv_buf(&mut grown).await.unwrap(), 6);
        client.send(b"more").await.unwrap();
        let mut short = [0; 2];
        assert_eq!(server.recv(&mut short).await.unwrap(), 2);
        assert_eq!(&short, b"mo");
        drop(server);
        assert_eq!(client.send(b"x").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(client.send_to(b"x", PATH).await.unwrap_err().kind(), ErrorKind::NotFound);
        UnixDatagram::bind(PATH).unwrap();
    });
}

#[test]
fn a_sender_waits_while_the_queue_is_full() {
    run(|| async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let mut sent = 0;
        while one.try_send(&[1; 1_000]).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, 212);
        let writer = tokio::spawn(async move {
            one.send(&[2; 1_000]).await.unwrap();
            one
        });
        assert!(timeout(Duration::from_millis(10), other.ready(Interest::READABLE)).await.is_ok());
        assert!(!writer.is_finished());
        other.recv(&mut [0; 1_000]).await.unwrap();
        let one = writer.await.unwrap();
        assert!(timeout(Duration::from_millis(10), one.send(&[3; 1_000])).await.is_err());
        let long = one.try_send(&[0; 300_000]).unwrap_err();
        assert!(long.to_string().contains("300000 bytes"), "{long}");
    });
}

#[test]
fn a_connected_socket_takes_datagrams_of_its_peer_only() {
    run(|| async {
        let (one, other) = (UnixDatagram::bind("/1").unwrap(), UnixDatagram::bind("/2").unwrap());
        one.connect("/2").unwrap();
        let stranger = UnixDatagram::unbound().unwrap();
        assert_eq!(stranger.try_send_to(b"x", "/1").unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(stranger.send(b"x").await.unwrap_err().kind(), ErrorKind::NotConnected);
        other.send_to(b"y", "/1").await.unwrap();
        let mut bytes = [0; 4];
        let mut buf = ReadBuf::new(&mut bytes);
        poll_fn(|cx| one.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"y");
        assert_eq!(one.try_recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(one.as_raw_fd() > 2);
    });
}

#[test]
fn a_shut_direction_is_closed() {
    run(|| async {
        let (one, other) = UnixDatagram::pair().unwrap();
        one.shutdown(Shutdown::Write).unwrap();
        assert_eq!(one.send(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        other.send(b"y").await.unwrap();
        one.shutdown(Shutdown::Read).unwrap();
        assert_eq!(other.send(b"y").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(one.recv(&mut [0]).await.unwrap(), 1);
    });
}

#[test]
fn a_socket_of_the_standard_library_is_refused() {
    let mut sim = Sim::new(7);
    sim.process("a", |_| async {
        let _ = UnixDatagram::unbound().unwrap().into_std();
    });
    let error = sim.run().unwrap_err().to_string();
    assert!(error.contains("tokio::net::UnixDatagram::into_std"), "{error}");
    assert!(error.contains("tests/all/unix.rs"), "{error}");
}
