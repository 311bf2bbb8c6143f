//! Finds a mistake with a clock fault: the holder works for as long as its lease is valid, and measures that
//! on the wall clock. No partition and no delay breaks the lock; a clock that is set back does.
//!
//! `cargo run --example wall_clock_lock`

use std::time::Duration;

use redis::{AsyncCommands, ExistenceCheck, RedisResult, SetExpiry, SetOptions};
use sim::faults::Faults;
use sim::servers::redis::RedisHost;
use sim::{Process, Sim, VerdictKind};

const KEY: &str = "report-42";
const TTL: Duration = Duration::from_secs(1);
/// The holder trusts its lease for its time to live less this margin.
const MARGIN: Duration = Duration::from_millis(100);

fn main() {
    search("partitions and delays", &["cut", "delay", "partition"]);
    search("clocks that are set", &["step"]);
}

fn search(what: &str, verbs: &[&str]) {
    let search = sim::check("wall_clock_lock", reports).faults(Faults::default().only(verbs));
    match search.keep_in("target/sim-regressions").schedules(1_000).find() {
        Ok(Some(failure)) => println!("{what} break it:\n\n{failure}"),
        Ok(None) => println!("{what} don't break it\n"),
        Err(problem) => eprintln!("{problem}"),
    }
}

/// Builds the world: a Redis, and two processes that write one report.
fn reports(sim: &mut Sim) {
    sim.host("redis", RedisHost::new().lock_key(KEY, "report:42")).key("report:42").scale(TTL);
    sim.check("one writer at a time", sim::no(VerdictKind::Overlap));
    for name in ["a", "b"] {
        sim.process(name, |process| async move {
            for _ in 0..3 {
                let _ = write(&process).await;
                process.sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

/// Writes under the lock, and leaves the lock to expire.
async fn write(process: &Process) -> RedisResult<()> {
    let mut redis = sim::clients::redis(process, "redis:6379").await?;
    let options = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::PX(TTL.as_millis() as u64));
    loop {
        // The mistake: the wall clock may be set.
        let valid_until = process.wall() + TTL - MARGIN;
        let set: Option<String> = redis.set_options(KEY, process.random(), options.clone()).await?;
        if set.is_none() {
            process.sleep(Duration::from_millis(50)).await;
            continue;
        }
        if process.wall() >= valid_until {
            return Ok(());
        }
        let section = process.section("report:42");
        while process.wall() < valid_until {
            process.point("writing");
            process.sleep(Duration::from_millis(20)).await;
        }
        drop(section);
        return Ok(());
    }
}
