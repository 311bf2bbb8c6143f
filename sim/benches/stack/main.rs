//! What the whole stack costs, in one run and as ratios.
//!
//! 1. Redis commands a second: three workers acquire and release by script on five servers, ten rounds; the real `redis`
//!    client, RESP2, Lua, the simulated network, with every event recorded and hashed. Against the same exchange over
//!    madsim's own `Endpoint` RPC and over turmoil's TCP, whose messages carry no protocol at all.
//! 2. Safety-experiment schedules a second: two workers, one Redis, the HTTP resource, a pause of five seconds, audit and
//!    trace hash included.
//!
//! `cargo bench -p sim -- memory` runs a million schedules on two threads instead and prints the peak of the memory.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark reads the clock"
)]

mod memory;
mod ours;
mod peers;

use std::time::{Duration, Instant};

use sim::run::run;
use sim::schedule::{Arm, Schedule};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The size of one exchange.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) workers: usize,
    pub(crate) servers: usize,
    pub(crate) rounds: usize,
}

const SHAPE: Shape = Shape { workers: 3, servers: 5, rounds: 10 };

/// Each contender is measured so often, in turn, for so long; the best turn counts, since noise only slows down.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_millis(800);

fn main() {
    if std::env::args().any(|argument| argument == "memory") {
        return memory::million();
    }
    if std::env::args().any(|argument| argument == "profile") {
        // For a profiler: nothing but our own exchange and the safety experiment.
        (0..200).for_each(|seed| assert!(ours::run(SHAPE, seed) > 0));
        return safety(1);
    }
    let contenders: [(&str, fn(Shape, u64) -> u64); 3] = [
        ("whole stack: redis client, RESP2, Lua, network, events, hash", ours::run),
        ("madsim Endpoint RPC", on_a_thread(peers::madsim_rpc::run)),
        ("turmoil TCP", peers::turmoil_tcp::run),
    ];
    let mut best = [0.0_f64; 3];
    for turn in 0..TURNS {
        for (number, (_, contender)) in contenders.iter().enumerate() {
            let rate = rate(|seed| contender(SHAPE, seed), turn as u64);
            best[number] = best[number].max(rate);
        }
    }
    println!(
        "calls a second, {} workers, {} servers, {} rounds, one core:",
        SHAPE.workers, SHAPE.servers, SHAPE.rounds
    );
    for ((name, _), rate) in contenders.iter().zip(best) {
        println!("  {rate:>10.0}  {name}");
    }
    println!("  {:>10.2}  of madsim's RPC", best[0] / best[1]);
    println!("  {:>10.1}  times turmoil", best[0] / best[2]);
    safety(TURNS);
}

/// madsim's runs need a fresh thread each, as ours do.
const fn on_a_thread(run: fn(Shape, u64) -> u64) -> fn(Shape, u64) -> u64 {
    let _ = run;
    |shape, seed| std::thread::spawn(move || peers::madsim_rpc::run(shape, seed)).join().unwrap()
}

/// Units of work a second: `work` returns how many it did.
fn rate(work: impl Fn(u64) -> u64, turn: u64) -> f64 {
    let began = Instant::now();
    let mut done = 0;
    let mut seed = turn << 32;
    while began.elapsed() < TURN {
        done += work(seed);
        seed += 1;
    }
    done as f64 / began.elapsed().as_secs_f64()
}

fn safety(turns: usize) {
    let text = include_str!("../../../seeds/gc-pause.toml");
    let schedule = Schedule::parse("seeds/gc-pause.toml", text).unwrap();
    let mut best = 0.0_f64;
    for turn in 0..turns {
        best = best.max(rate(
            |seed| {
                let report = run(&schedule, Arm::Fenced, seed).unwrap();
                assert!(!report.verdicts.is_empty());
                1
            },
            turn as u64,
        ));
    }
    let report = run(&schedule, Arm::Fenced, 0).unwrap();
    println!("safety experiment, fencing on, one core, audit and trace hash included:");
    println!(
        "  {best:>10.0}  schedules a second, {} events and {} commands each",
        report.events.len(),
        report.commands
    );
}
