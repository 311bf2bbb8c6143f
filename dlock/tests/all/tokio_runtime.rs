//! The runtime on tokio over a loopback socket.

#![cfg(feature = "tokio")]
#![allow(clippy::disallowed_methods, reason = "the test is the server")]

use std::time::Duration;

use dlock::{Elapsed, Owner, Runtime, TokioRuntime, timeout_at};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

#[tokio::test]
async fn bytes_cross_a_loopback_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let runtime = TokioRuntime::new(Handle::current());
    runtime.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut question = [0; 4];
        stream.read_exact(&mut question).await.unwrap();
        stream.write_all(&question).await.unwrap();
    });
    let mut stream = runtime.connect(&address).await.unwrap();
    stream.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
}

#[tokio::test]
async fn a_connection_without_a_listener_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = TokioRuntime::new(Handle::current()).connect(&address).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_sleep_ends_at_its_deadline_and_not_before() {
    let runtime = TokioRuntime::new(Handle::current());
    let deadline = runtime.now() + Duration::from_millis(5);
    assert_eq!(timeout_at(&runtime, deadline, std::future::pending::<()>()).await, Err(Elapsed));
    assert!(runtime.now() >= deadline);
}

#[tokio::test]
async fn random_owners_differ() {
    let runtime = TokioRuntime::new(Handle::current());
    assert_ne!(Owner::random(&runtime, Some("w")), Owner::random(&runtime, Some("w")));
}
