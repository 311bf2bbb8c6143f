//! A booking service: axum takes the requests, a Redis lock guards a seat, and the seats are kept by a store
//! behind HTTP. It knows nothing of a simulator.

pub mod store;

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use dlock::{AnyBackend, Lock, LockKey, Options, TokioRuntime};
use reqwest::{Client, RequestBuilder};
use rslock::LockManager;

/// The lease of a lock.
pub const TTL: Duration = Duration::from_secs(2);

/// The time in which a customer pays.
const PAYMENT: Duration = Duration::from_millis(300);

#[derive(Clone)]
struct Booking {
    lock: SeatLock,
    client: Client,
    store: String,
}

/// The lock of a seat.
#[derive(Clone)]
enum SeatLock {
    /// rslock: it excludes others while the lease lasts, and no longer.
    Plain(LockManager),
    /// dlock: each lease has a fencing token, which the store checks.
    Fenced(Lock<AnyBackend<TokioRuntime>>),
}

/// Serves bookings on port 8080 under locks of rslock.
pub async fn serve(redis: &str, store: &str) -> std::io::Result<()> {
    run(SeatLock::Plain(LockManager::new(vec![redis.to_owned()])), store).await
}

/// Serves bookings on port 8080 under locks with fencing tokens.
pub async fn serve_fenced(redis: &str, store: &str) -> std::io::Result<()> {
    let lock = Lock::connect(redis, Options::new(TTL)).await.map_err(std::io::Error::other)?;
    run(SeatLock::Fenced(lock), store).await
}

async fn run(lock: SeatLock, store: &str) -> std::io::Result<()> {
    let booking = Booking { lock, client: Client::new(), store: store.to_owned() };
    let app = Router::new().route("/seats/{seat}/{customer}", post(book)).with_state(booking);
    axum::serve(tokio::net::TcpListener::bind("0.0.0.0:8080").await?, app).await
}

/// Sells a seat, if it is free.
async fn book(State(booking): State<Booking>, Path((seat, customer)): Path<(String, String)>) -> StatusCode {
    match &booking.lock {
        SeatLock::Plain(locks) => {
            let Ok(lock) = locks.lock(seat.as_str(), TTL).await else { return StatusCode::CONFLICT };
            let status = booking.sell(&seat, &customer, None).await;
            locks.unlock(&lock).await;
            status.unwrap_or(StatusCode::BAD_GATEWAY)
        }
        SeatLock::Fenced(lock) => {
            let Ok(key) = LockKey::new("seats", &seat) else { return StatusCode::BAD_REQUEST };
            let Ok(handle) = lock.try_acquire(&key).await else { return StatusCode::CONFLICT };
            let status = booking.sell(&seat, &customer, Some(handle.fence().as_u64())).await;
            drop(handle.release().await);
            status.unwrap_or(StatusCode::BAD_GATEWAY)
        }
    }
}

impl Booking {
    async fn sell(&self, seat: &str, customer: &str, token: Option<u64>) -> reqwest::Result<StatusCode> {
        let url = format!("{}/seats/{seat}", self.store);
        let with_token = |request: RequestBuilder| match token {
            Some(token) => request.header(store::TOKEN, token),
            None => request,
        };
        let owner = with_token(self.client.get(&url)).send().await?.error_for_status()?;
        if !owner.text().await?.is_empty() {
            return Ok(StatusCode::GONE);
        }
        tokio::time::sleep(PAYMENT).await;
        let sale = with_token(self.client.put(&url)).body(customer.to_owned());
        Ok(sale.send().await?.status())
    }
}
