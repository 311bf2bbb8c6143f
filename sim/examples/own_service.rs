//! A custom service with a custom check. The service hands out numbers, each once, and keeps the last one on
//! its disk. It answers before it syncs, so it hands out a number twice after a power loss.
//!
//! `cargo run --example own_service`

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use sim::{Evidence, Kind, Process, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn main() {
    let found = sim::check("own_service", numbers).keep_in("target/sim-regressions").schedules(2_000).find();
    match found {
        Ok(Some(failure)) => println!("{failure}"),
        Ok(None) => println!("no number was handed out twice"),
        Err(problem) => eprintln!("{problem}"),
    }
}

/// Builds the world: the service, and two clients that ask it for numbers.
fn numbers(sim: &mut Sim) {
    sim.service("numbers", serve).check("each number once", each_number_once);
    for name in ["a", "b"] {
        sim.process(name, |process| async move {
            for _ in 0..5 {
                if let Ok(number) = ask(&process).await {
                    process.point(&format!("got {number}"));
                }
                process.sleep(Duration::from_millis(50)).await;
            }
        });
    }
}

/// Runs the service: writes each number to the disk and sends it to the client. Syncs every tenth number.
async fn serve(process: Process) {
    let file = process.disk().open();
    let Ok(mut listener) = process.listen(7000) else { return };
    loop {
        let (mut stream, _) = listener.accept().await;
        let Ok(contents) = file.contents() else { return };
        let number = contents.len() as u64 + 1;
        if file.append(b"+").is_err() || (number.is_multiple_of(10) && file.sync().is_err()) {
            return;
        }
        // A client that has disconnected makes a new request.
        let _ = stream.write_all(&number.to_be_bytes()).await;
    }
}

async fn ask(process: &Process) -> io::Result<u64> {
    process.connect("numbers:7000").await?.read_u64().await
}

/// Checks that no number was handed out twice.
fn each_number_once(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut given = BTreeSet::new();
    for event in evidence.events {
        if let Kind::PointPassed { step } = &event.kind
            && !given.insert(step.as_str())
        {
            return Err(format!("{} {} at {}, for the second time", event.process, step, event.at));
        }
    }
    Ok(())
}
