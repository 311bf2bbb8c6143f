//! The service in our simulator, once with the clients and the server that turmoil can have, and once with
//! reqwest and a whole simulated Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use sim::servers::redis::RedisHost;
use sim::{Process, Sim};
use speed::net::Tokio;
use speed::{CUSTOMERS, LATENCY, booking, customer, hyper_client, measure, redis_server};

fn main() {
    measure("ours", |seed| {
        let mut sim = Sim::new(seed);
        sim.service("redis", |_| async { redis_server::<Tokio>().await.unwrap() });
        run(sim, |seat| async move { customer(seat, hyper_client::<Tokio>()).await })
    });
    measure("ours with reqwest and a whole Redis", |seed| {
        let mut sim = Sim::new(seed);
        sim.host("redis", RedisHost::new());
        run(sim, |seat| async move {
            let client = reqwest::Client::new();
            let post = |url| {
                let request = client.post(url);
                async { request.send().await.map_or(StatusCode::BAD_GATEWAY, |answer| answer.status()) }
            };
            customer(seat, post).await
        })
    });
}

/// Returns the number of bookings.
fn run<F: Future<Output = usize> + Send + 'static>(
    mut sim: Sim,
    customer: impl Fn(usize) -> F + Clone + Send + Sync + 'static,
) -> usize {
    let booked = Arc::new(AtomicUsize::new(0));
    sim.latency(LATENCY, LATENCY);
    sim.service("booking", |_| async { booking::<Tokio>().await.unwrap() });
    for seat in 0..CUSTOMERS {
        let (booked, customer) = (Arc::clone(&booked), customer.clone());
        sim.process(&format!("customer-{seat}"), move |_: Process| {
            let (booked, customer) = (Arc::clone(&booked), customer.clone());
            async move {
                booked.fetch_add(customer(seat).await, Ordering::Relaxed);
            }
        });
    }
    sim.run().unwrap();
    booked.load(Ordering::Relaxed)
}
