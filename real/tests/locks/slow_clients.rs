//! The resource closes the connections of clients that send no request, or half of one.

use std::sync::Arc;
use std::time::Duration;

use real::serve::{Patience, serve_patiently};
use resource::http::{App, Config};
use resource::store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_millis(200);
const NEVER: Duration = Duration::from_secs(3600);

async fn connect(patience: Patience) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::new(Arc::new(MemoryStore::default()), Config::default());
    tokio::spawn(serve_patiently(listener, app, None, patience));
    TcpStream::connect(address).await.unwrap()
}

/// Reads until the server closes the connection; an answer may come before.
async fn wait_for_the_end(mut client: TcpStream) {
    let mut answer = Vec::new();
    // A reset is an end, too.
    let _ = client.read_to_end(&mut answer).await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    wait_for_the_end(connect(Patience { request: NEVER, idle: SOON }).await).await;
}

#[tokio::test]
async fn half_a_header_ends_the_connection() {
    let mut client = connect(Patience { request: SOON, idle: NEVER }).await;
    client.write_all(b"PUT /r/a HTTP/1.1\r\nHost:").await.unwrap();
    wait_for_the_end(client).await;
}

#[tokio::test]
async fn half_a_body_ends_the_connection() {
    let mut client = connect(Patience { request: SOON, idle: NEVER }).await;
    let head = "PUT /r/a HTTP/1.1\r\nHost: a\r\nX-Fence-Token: 1\r\nContent-Length: 9\r\n\r\nhalf";
    client.write_all(head.as_bytes()).await.unwrap();
    wait_for_the_end(client).await;
}

#[tokio::test]
async fn a_connection_outlives_its_requests() {
    let mut client = connect(Patience { request: SOON, idle: NEVER }).await;
    let request = "GET /r/a HTTP/1.1\r\nHost: a\r\n\r\n";
    for wait in [Duration::ZERO, 2 * SOON] {
        tokio::time::sleep(wait).await;
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let length = client.read(&mut answer).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200"), "{}", answer[..length].escape_ascii());
    }
}
