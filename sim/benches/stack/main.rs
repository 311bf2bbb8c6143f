//! What the whole stack costs, in one run and as ratios.
//!
//! 1. Redis commands a second: three workers acquire and release by script on five servers, ten rounds; the real `redis`
//!    client, RESP2, Lua, the simulated network, with every event recorded and hashed. Against the same exchange over
//!    madsim's own `Endpoint` RPC and over turmoil's TCP, whose messages carry no protocol at all.
//! 2. Schedules a second of the safety experiment, a pause of five seconds: two workers and the HTTP resource, on one Redis
//!    and with Redlock on five; audit and trace hash included.
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

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sim::run::run;
use sim::schedule::{Arm, Schedule};

#[global_allocator]
static ALLOCATOR: sim::allocator::Allocator = sim::allocator::Allocator;

/// The size of one exchange.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) workers: usize,
    pub(crate) servers: usize,
    pub(crate) rounds: usize,
}

const SHAPE: Shape = Shape { workers: 3, servers: 5, rounds: 10 };

/// Each contender is measured so often, in turn, for so long; the best turn counts, since noise only slows down. Time is
/// what the process has had of a processor ([`busy`]): other processes take none of it.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_millis(1000);

fn main() {
    if std::env::args().any(|argument| argument == "memory") {
        return memory::million();
    }
    if std::env::args().any(|argument| argument == "profile") {
        return profile();
    }
    if std::env::args().any(|argument| argument == "figures") {
        return figures(TURNS);
    }
    let contenders = [
        Contender { name: "whole stack: redis client, RESP2, Lua, network, events, hash", run: ours::run },
        Contender { name: "madsim Endpoint RPC, plain structs", run: peers::madsim_rpc::run },
        Contender {
            name: "turmoil TCP, plain frames, our latencies",
            run: peers::turmoil_tcp::with_our_latencies,
        },
        Contender {
            name: "turmoil TCP, plain frames, its own defaults",
            run: peers::turmoil_tcp::with_its_defaults,
        },
    ];
    let mut best = [0.0_f64; 4];
    for turn in 0..TURNS {
        for (contender, best) in contenders.iter().zip(&mut best) {
            *best = best.max(rate(|seed| (contender.run)(SHAPE, seed), turn as u64));
        }
    }
    println!(
        "calls a second, {} workers, {} servers, {} rounds, one core:",
        SHAPE.workers, SHAPE.servers, SHAPE.rounds
    );
    for (contender, rate) in contenders.iter().zip(best) {
        println!("  {rate:>10.0}  {}", contender.name);
    }
    println!("  {:>10.2}  of madsim's RPC", best[0] / best[1]);
    println!("  {:>10.1}  times turmoil at our latencies", best[0] / best[2]);
    println!("  {:>10.1}  times turmoil at its defaults", best[0] / best[3]);
    figures(TURNS);
}

/// For a profiler, which counts instructions where clocks only see noise: nothing but our own exchange.
fn profile() {
    const RUNS: u64 = 200;
    let calls: u64 = (0..RUNS).map(|seed| ours::run(SHAPE, seed)).sum();
    println!("{RUNS} runs, {calls} calls");
}

/// Something that makes the exchange, given its shape and a seed, and says how many calls were answered.
struct Contender {
    name: &'static str,
    run: fn(Shape, u64) -> u64,
}

/// Units of work a second: `work` returns how many it did.
fn rate(work: impl Fn(u64) -> u64, turn: u64) -> f64 {
    let began = busy();
    let mut done = 0;
    let mut seed = turn << 32;
    while busy() - began < TURN {
        // Looking at the clock costs some microseconds.
        for _ in 0..16 {
            done += work(seed);
            seed += 1;
        }
    }
    done as f64 / (busy() - began).as_secs_f64()
}

/// The processor time that this process has used, ended threads included; time itself where the system does not tell.
fn busy() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| {
        // After the name in parentheses come the fields 3 and on; 14 and 15 count hundredths of a second.
        let fields = stat.rsplit_once(')')?.1;
        let ticks = |field: usize| fields.split_whitespace().nth(field - 3)?.parse::<u64>().ok();
        Some(Duration::from_millis(10 * (ticks(14)? + ticks(15)?)))
    });
    told.unwrap_or_else(|| BEGAN.elapsed())
}

/// Kleppmann's figure, fencing on, on one Redis and on five.
const FIGURES: [(&str, &str); 2] = [
    ("seeds/gc-pause.toml", include_str!("../../../seeds/gc-pause.toml")),
    ("seeds/gc-pause-redlock.toml", include_str!("../../../seeds/gc-pause-redlock.toml")),
];

fn figures(turns: usize) {
    println!("the figure, fencing on, one core, audit and trace hash included:");
    for (file, text) in FIGURES {
        let schedule = Schedule::parse(file, text).unwrap();
        let mut best = 0.0_f64;
        for turn in 0..turns {
            let judged = |seed| {
                let report = run(&schedule, Arm::Fenced, seed).unwrap();
                assert!(!report.verdicts.is_empty());
                1
            };
            best = best.max(rate(judged, turn as u64));
        }
        let report = run(&schedule, Arm::Fenced, 0).unwrap();
        println!(
            "  {best:>10.0}  schedules a second of {file}, {} events and {} commands each",
            report.events.len(),
            report.commands
        );
    }
}
