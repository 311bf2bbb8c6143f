//! Pipes within a process, in memory.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::time::Duration;

use sim::Sim;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::unix::pipe::{OpenOptions, pipe};
use tokio::time::{sleep, timeout};

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
fn a_receiver_reads_to_the_end_of_the_pipe() {
    run(|| async {
        let (mut sender, mut receiver) = pipe().unwrap();
        let reader = tokio::spawn(async move {
            let mut text = String::new();
            receiver.read_to_string(&mut text).await.unwrap();
            assert!(receiver.ready(Interest::READABLE).await.unwrap().is_read_closed());
            text
        });
        sender.write_all(b"hello ").await.unwrap();
        sleep(Duration::from_millis(1)).await;
        let written = sender.write_vectored(&[IoSlice::new(b"wor"), IoSlice::new(b"ld")]).await;
        assert_eq!(written.unwrap(), 5);
        // It does nothing, as tokio's own.
        sender.shutdown().await.unwrap();
        sender.write_all(b"!").await.unwrap();
        assert!(sender.as_raw_fd() > 2);
        assert!(!reader.is_finished());
        drop(sender);
        assert_eq!(reader.await.unwrap(), "hello world!");
    });
}

#[test]
fn a_full_pipe_makes_its_sender_wait() {
    run(|| async {
        let (sender, receiver) = pipe().unwrap();
        assert_eq!(sender.try_write(&[1; 60_000]).unwrap(), 60_000);
        // Up to 4,096 bytes are sent as a whole, more as far as there is room.
        assert_eq!(sender.try_write(&[2; 4_096]).unwrap(), 4_096);
        assert_eq!(sender.try_write(&[3; 4_096]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(timeout(Duration::from_millis(1), sender.writable()).await.is_err());
        assert_eq!(sender.try_write(&[4; 5_000]).unwrap(), 1_440);
        assert_eq!(sender.try_write(&[5]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let waits = tokio::spawn(async move {
            sender.writable().await.unwrap();
            sender.try_write(&[6; 4_096]).unwrap()
        });
        let mut bytes = [0; 4_095];
        assert_eq!(receiver.try_read(&mut bytes).unwrap(), 4_095);
        sleep(Duration::from_millis(1)).await;
        assert!(!waits.is_finished());
        assert_eq!(receiver.try_read(&mut bytes[..1]).unwrap(), 1);
        assert_eq!(waits.await.unwrap(), 4_096);
    });
}

#[test]
fn a_sender_without_a_receiver_gets_an_error() {
    run(|| async {
        let (sender, receiver) = pipe().unwrap();
        assert!(!sender.ready(Interest::WRITABLE).await.unwrap().is_write_closed());
        drop(receiver);
        assert!(sender.ready(Interest::WRITABLE).await.unwrap().is_write_closed());
        assert_eq!(sender.try_write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn calls_that_try_do_not_wait() {
    run(|| async {
        let (sender, receiver) = pipe().unwrap();
        assert_eq!(receiver.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(timeout(Duration::from_millis(1), receiver.readable()).await.is_err());
        sender.try_write_vectored(&[IoSlice::new(b"one"), IoSlice::new(b"two")]).unwrap();
        receiver.readable().await.unwrap();
        let mut bytes = [0; 3];
        let read = receiver.try_read_vectored(&mut [IoSliceMut::new(&mut []), IoSliceMut::new(&mut bytes)]);
        assert_eq!((read.unwrap(), &bytes), (3, b"one"));
        let mut rest = Vec::new();
        assert_eq!(receiver.try_read_buf(&mut rest).unwrap(), 3);
        assert_eq!(rest, b"two");
    });
}

#[test]
fn a_named_pipe_is_refused() {
    let mut sim = Sim::new(7);
    sim.process("a", |_| async {
        drop(OpenOptions::new().read_write(true).open_receiver("/run/pipe"));
    });
    let error = sim.run().unwrap_err().to_string();
    assert!(error.contains("tokio::net::unix::pipe::OpenOptions::open_receiver"), "{error}");
    assert!(error.contains("use tokio::net::unix::pipe::pipe, or a UnixStream"), "{error}");
    assert!(error.contains("tests/all/pipes.rs"), "{error}");
}
