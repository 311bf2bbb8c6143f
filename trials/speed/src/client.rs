//! The customers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tower::util::BoxCloneSyncService;

use crate::REQUESTS;
use crate::net::Net;

/// Books a seat again and again by `post`, which sends a request to a URL. Returns the number of bookings.
pub async fn customer<F: Future<Output = StatusCode>>(seat: usize, post: impl Fn(String) -> F) -> usize {
    // The service is up by then.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut booked = 0;
    for number in 0..REQUESTS {
        let status = post(format!("http://booking:8080/seats/{seat}/{number}")).await;
        booked += usize::from(status == StatusCode::OK);
    }
    booked
}

/// Returns a function that posts by hyper's own client.
pub fn hyper_client<N: Net>() -> impl Fn(String) -> Pin<Box<dyn Future<Output = StatusCode> + Send>> {
    let connect = tower::service_fn(|uri: Uri| async move {
        let stream = N::connect(uri.host().unwrap(), uri.port_u16().unwrap()).await?;
        Ok::<_, io::Error>(Stream(TokioIo::new(stream)))
    });
    let client = Client::builder(TokioExecutor::new()).build(BoxCloneSyncService::new(connect));
    move |url| {
        let request = Request::builder().method(Method::POST).uri(url);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let answer = client.request(request);
        Box::pin(async move { answer.await.unwrap().status() })
    }
}

/// A stream as hyper's client wants it.
struct Stream<S>(TokioIo<S>);

impl<S> Connection for Stream<S> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl<S: tokio::io::AsyncRead + Unpin> hyper::rt::Read for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: tokio::io::AsyncWrite + Unpin> hyper::rt::Write for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
