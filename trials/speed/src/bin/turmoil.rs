//! The service in turmoil.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use speed::net::Turmoil;
use speed::{CUSTOMERS, LATENCY, booking, customer, hyper_client, measure, redis_server};

fn main() {
    measure("turmoil", run);
}

/// Returns the number of bookings.
fn run(seed: u64) -> usize {
    let mut builder = turmoil::Builder::new();
    builder.min_message_latency(LATENCY).max_message_latency(LATENCY);
    let mut sim = builder.rng_seed(seed).simulation_duration(Duration::from_secs(600)).build();
    sim.host("redis", || async { Ok(redis_server::<Turmoil>().await?) });
    sim.host("booking", || async { Ok(booking::<Turmoil>().await?) });
    let booked = Arc::new(AtomicUsize::new(0));
    for seat in 0..CUSTOMERS {
        let booked = Arc::clone(&booked);
        sim.client(format!("customer-{seat}"), async move {
            booked.fetch_add(customer(seat, hyper_client::<Turmoil>()).await, Ordering::Relaxed);
            Ok(())
        });
    }
    sim.run().unwrap();
    booked.load(Ordering::Relaxed)
}
