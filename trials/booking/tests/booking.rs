//! The service on trial: two of it behind which two customers want the same seat.

use sim::servers::redis::RedisHost;
use sim::{Process, Sim};

const SEAT: &str = "12A";
const REDIS: &str = "redis://redis:6379";
const STORE: &str = "http://store:8081";

/// Two services, the store, and a customer at each service.
fn world(sim: &mut Sim, fenced: bool) {
    // The keys of dlock are known; that of rslock is named.
    let lock = if fenced { "seats:12A" } else { SEAT };
    sim.host("redis", RedisHost::new().lock_key(SEAT, SEAT)).key(lock).scale(booking::TTL);
    sim.service("store", |_| async {
        booking::store::serve(|owner, buyer| {
            sim::always!("a seat is sold once", owner.is_empty() || owner == buyer);
        })
        .await
        .expect("a free port");
    });
    for (service, customer) in [("booking-1", "ann"), ("booking-2", "bob")] {
        sim.service(service, move |_| async move {
            let served = if fenced {
                booking::serve_fenced(REDIS, STORE).await
            } else {
                booking::serve(REDIS, STORE).await
            };
            drop(served);
        });
        sim.process(customer, move |process: Process| async move {
            let client = reqwest::Client::new();
            let url = format!("http://{service}:8080/seats/{SEAT}/{customer}");
            for _ in 0..10 {
                let answer = client.post(&url).timeout(booking::TTL * 4).send().await;
                let status = answer.map_or("no answer".to_owned(), |answer| answer.status().to_string());
                process.point(&format!("{customer}: {status}"));
                tokio::time::sleep(booking::TTL / 4).await;
            }
        });
    }
}

#[test]
fn a_lock_alone_sells_a_seat_twice() {
    let folder = std::env::temp_dir().join(format!("booking-{}", std::process::id()));
    let search = sim::check("booking", |sim: &mut Sim| world(sim, false)).schedules(1000).keep_in(&folder);
    let failure = search.find().expect("the search runs");
    std::fs::remove_dir_all(folder).ok();
    let failure = failure.expect("a seat is sold twice");
    println!("{failure}");
    assert!(failure.problems.iter().any(|problem| problem.contains("a seat is sold once")), "{failure}");
}

#[test]
fn a_fencing_token_that_the_store_checks_sells_it_once() {
    sim::check("booking_fenced", |sim: &mut Sim| world(sim, true)).schedules(1000).check_determinism().run();
}
