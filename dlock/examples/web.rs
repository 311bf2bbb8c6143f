//! A web service that changes an order under its lock. A request whose order is taken gets 409 with the time
//! after which another try is worthwhile; SIGTERM ends the service and releases its locks.
//!
//! Run it: `cargo run --example web -- redis://127.0.0.1:6379 127.0.0.1:8080`, then
//! `curl -i -X POST http://127.0.0.1:8080/orders/42/pay` twice within two seconds.
#![allow(clippy::disallowed_methods, reason = "a live service")]

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use dlock::{AnyBackend, Cap, Lock, LockKey, Options, TokioRuntime, TryAcquireError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

type Locks = Lock<AnyBackend<TokioRuntime>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let listen = std::env::args().nth(2).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let locks = Lock::connect(&url, Options::new(Duration::from_secs(10))).await?;
    let routes = Router::new().route("/orders/{id}/pay", post(pay)).with_state(locks.clone());
    let listener = TcpListener::bind(&listen).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut terminated = signal(SignalKind::terminate())?;
    let ends = async move { terminated.recv().await.map_or((), |()| println!("ends")) };
    // Requests in progress are finished first, and their locks released.
    axum::serve(listener, routes).with_graceful_shutdown(ends).await?;
    let closed = locks.close(locks.deadline_in(Duration::from_secs(5))).await;
    println!("released {}, unconfirmed {}", closed.released, closed.unconfirmed);
    Ok(())
}

async fn pay(State(locks): State<Locks>, Path(id): Path<String>) -> Response {
    let Ok(key) = LockKey::new("orders", &id) else { return StatusCode::BAD_REQUEST.into_response() };
    let handle = match locks.try_acquire(&key).await {
        Ok(handle) => handle,
        Err(TryAcquireError::Taken { retry_after }) => return taken(retry_after),
        Err(error) => return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    };
    let token = handle.fence();
    // Slow work, such as a call to a payment provider. The storage must refuse a token below the highest that
    // it has seen.
    let work = tokio::time::sleep(Duration::from_secs(2));
    if let Err(lost) = handle.while_held(Cap(Duration::from_secs(60)), work).await {
        return (StatusCode::SERVICE_UNAVAILABLE, lost.to_string()).into_response();
    }
    // The lease ends by itself if the release is not confirmed.
    let _ = handle.release().await;
    format!("order {id}: paid, with token {token}\n").into_response()
}

/// Answers that another request works on the order.
fn taken(retry_after: Option<Duration>) -> Response {
    let seconds = retry_after.map_or(1, |left| left.as_secs() + 1);
    let retry: [(HeaderName, String); 1] = [(header::RETRY_AFTER, seconds.to_string())];
    (StatusCode::CONFLICT, retry, "another request works on this order\n").into_response()
}
