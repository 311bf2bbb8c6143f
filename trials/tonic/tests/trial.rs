//! tonic 0.14: a unary method that books, and clients that try again with the same idempotency key.

mod bookings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bookings::{Client, Order, Receipt, Server};
use common::{Form, try_both};
use sim::Sim;
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};

/// The limit of one try.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The keys of all bookings. They outlive a crash of the service, as a database does.
type Ledger = Arc<Mutex<Vec<String>>>;

/// Books an order. The correct form answers a key that it knows with the booking that it has.
fn book(ledger: &Ledger, order: &Order, form: Form) -> Receipt {
    let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let key = &order.idempotency_key;
    let known = ledger.iter().position(|known| known == key);
    let number = match known {
        Some(number) if form == Form::Correct => {
            sim::reached!("a second try finds its booking");
            number
        }
        _ => {
            ledger.push(key.clone());
            ledger.len() - 1
        }
    };
    sim::always!("an order books once", ledger.iter().filter(|booked| *booked == key).count() == 1);
    Receipt { number: number as u64 }
}

/// Serves bookings on port 50051. (`serve(address)` would bind a socket of the standard library.)
async fn serve(ledger: Ledger, form: Form) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let incoming = TcpIncoming::from(TcpListener::bind("0.0.0.0:50051").await?);
    let server = Server(move |order: &Order| book(&ledger, order, form));
    tonic::transport::Server::builder().add_service(server).serve_with_incoming(incoming).await?;
    Ok(())
}

fn connect() -> Channel {
    let endpoint = Endpoint::from_static("http://bookings:50051").timeout(TIMEOUT).connect_timeout(TIMEOUT);
    endpoint.http2_keep_alive_interval(TIMEOUT).keep_alive_timeout(TIMEOUT).connect_lazy()
}

/// Tries an order up to eight times, with growing waits.
async fn order(client: &mut Client, order: &Order) -> Option<Receipt> {
    let mut wait = Duration::from_millis(50);
    for _ in 0..8 {
        match client.book(order).await {
            Ok(receipt) => return Some(receipt),
            Err(status) => match status.code() {
                Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                    sim::reached!("an order is tried again");
                }
                _ => sim::always!("no try fails for another reason than the network", false),
            },
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    None
}

/// The service, and two customers, each with three orders. A customer that starts again repeats its orders.
fn world(sim: &mut Sim, form: Form) {
    let ledger = Ledger::default();
    sim.scale(TIMEOUT).service("bookings", move |_| {
        let ledger = ledger.clone();
        async move { serve(ledger, form).await.expect("a free port") }
    });
    for name in ["ann", "bob"] {
        sim.process(name, move |_| async move {
            let mut client = Client::new(connect());
            for number in 0..3 {
                let wanted = Order { idempotency_key: format!("{name}-{number}") };
                match order(&mut client, &wanted).await {
                    Some(_) => sim::point("booked"),
                    None => sim::point("gave up"),
                }
            }
        });
    }
}

#[test]
fn retries_with_a_key_book_once() {
    try_both("tonic", "an order books once", world);
}
