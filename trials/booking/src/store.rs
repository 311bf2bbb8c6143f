//! The store of the seats: it remembers the owner of each, and refuses a fencing token below the highest that
//! it has seen.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;

/// The header with the fencing token.
pub const TOKEN: &str = "x-fencing-token";

/// The owner of each seat, and the highest token seen for it.
type Seats = Arc<Mutex<BTreeMap<String, (String, u64)>>>;

/// Serves the store on port 8081. Calls `on_sale` with the owner of a seat until now, and the buyer.
pub async fn serve(on_sale: fn(&str, &str)) -> std::io::Result<()> {
    let put = move |State(seats): State<Seats>, Path(seat): Path<String>, head: HeaderMap, buyer: String| {
        ready(visit(&seats, seat, &head, |owner| {
            on_sale(owner, &buyer);
            *owner = buyer;
        }))
    };
    let read = |State(seats): State<Seats>, Path(seat): Path<String>, head: HeaderMap| {
        ready(visit(&seats, seat, &head, |owner| owner.clone()))
    };
    let app = Router::new().route("/seats/{seat}", get(read).put(put)).with_state(Seats::default());
    axum::serve(tokio::net::TcpListener::bind("0.0.0.0:8081").await?, app).await
}

/// Gives the owner of a seat to `act`, unless a higher token than the request's has been seen. A read counts:
/// once a holder has read that the seat is free, all earlier ones are refused.
fn visit<T>(
    seats: &Seats,
    seat: String,
    head: &HeaderMap,
    act: impl FnOnce(&mut String) -> T,
) -> Result<T, StatusCode> {
    let token = head.get(TOKEN).and_then(|token| token.to_str().ok()?.parse().ok()).unwrap_or(0);
    let mut seats = seats.lock().unwrap_or_else(PoisonError::into_inner);
    let (owner, highest) = seats.entry(seat).or_default();
    if token < *highest {
        return Err(StatusCode::PRECONDITION_FAILED);
    }
    *highest = token;
    Ok(act(owner))
}
