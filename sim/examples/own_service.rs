//! A service of one's own with a check of one's own: it hands out numbers, each once, and keeps the last one
//! on its disk. It answers before it syncs, so a loss of power makes it hand out a number twice.
//!
//! `cargo run -p sim --example own_service`

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use resource::audit::Kind;
use sim::{Evidence, Process, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn main() {
    let found = sim::check("own_service", numbers).keep_in("target/sim-regressions").schedules(2_000).find();
    match found {
        Ok(Some(failure)) => println!("{failure}"),
        Ok(None) => println!("no number was handed out twice"),
        Err(problem) => eprintln!("{problem}"),
    }
}

/// The world: the service, and two clients that ask it for numbers.
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

/// The service: the number goes to the disk, and to the client. It is synced every tenth time.
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
        // A client that has gone away asks again.
        let _ = stream.write_all(&number.to_be_bytes()).await;
    }
}

async fn ask(process: &Process) -> io::Result<u64> {
    process.connect("numbers:7000").await?.read_u64().await
}

/// No two clients got the same number.
fn each_number_once(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut given = BTreeSet::new();
    for event in evidence.events {
        if let Kind::PointPassed { step } = &event.kind
            && !given.insert(step.as_str())
        {
            return Err(format!("{} {} at {}, as somebody before", event.process, step, event.at));
        }
    }
    Ok(())
}
