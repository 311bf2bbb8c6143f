//! The example `seat_refund`, killed at every step of the late buyer: it is refunded exactly once.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use real::servers::{Persistence, Postgres, Redis, Stage};
use tokio_postgres::{Client, NoTls};

/// The signal of `abort`.
const SIGABRT: i32 = 6;

/// The steps of the late buyer, in their order.
const STEPS: [&str; 7] = [
    "begun recorded",
    "payment answered",
    "paid recorded",
    "seat answered",
    "refund due recorded",
    "refund answered",
    "refunded recorded",
];

/// Runs the example, which `cargo test --workspace` has built.
fn run(arguments: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_BIN_EXE_real")).parent().unwrap().join("examples");
    let program = folder.join("seat_refund");
    assert!(program.exists(), "{} is missing: run `cargo build --workspace --examples`", program.display());
    Command::new(program).args(arguments).output().unwrap()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns the charges and refunds of Ada, zeros if the bank does not know her.
async fn payments(client: &Client) -> (i32, i32) {
    let sums = "SELECT charges, refunds FROM bank.payments WHERE booking = 'Ada'";
    let row = client.query_opt(sums, &[]).await.unwrap();
    row.map_or((0, 0), |row| (row.get(0), row.get(1)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_step_leads_to_one_refund() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let redis = format!("redis://{}", redis.address());
    let admin = connect(&postgres.url()).await;
    for (number, step) in STEPS.into_iter().enumerate() {
        let name = format!("killed_{number}");
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let url = format!("postgresql://postgres@{}/{name}", postgres.address());

        let killed = run(&[&url, &redis, "fenced", step]);
        assert_eq!(killed.status.signal(), Some(SIGABRT), "{step}: {killed:?}");
        let client = connect(&url).await;
        // Only the last two steps come after the refund.
        let charged = i32::from(step != "begun recorded");
        assert_eq!(payments(&client).await, (charged, i32::from(number >= 5)), "{step}");

        // The next run finishes the bookings, and a further one finds them finished.
        for _ in 0..2 {
            let finished = run(&[&url, &redis]);
            let printed = String::from_utf8_lossy(&finished.stdout);
            let expected = "Ada: refunded; charges: 1, refunds: 1\nBob: booked; charges: 1, refunds: 0\n\
                            seat 12A is Bob's\n";
            assert_eq!(printed, expected, "{step}: {}", String::from_utf8_lossy(&finished.stderr));
            assert_eq!(payments(&client).await, (1, 1), "{step}");
        }
    }
}
